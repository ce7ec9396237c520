"""Keyed process: a user function with state and timers, one row at a time.

    as they come   batch ──▶ a turn: its rows, in order of arrival
    in order       batch ──▶ rows wait in state ──watermark──▶ a turn: rows and timers by event time

Order    as they come, the rows of a key are processed in the order in which they arrive. In order
         of event time, a timer of time t fires after all rows before t and before all others; rows
         of equal time come by their values, see `event_order.py`, those of input 0 first.
Late     in order, rows that came behind their watermark go to the side output "late", those of
         input 1 to "late_right".
Cost     see `turn.py`; in order, rows wait as columns until event time has passed them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, cast

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, MAX_TIME, MIN_TIME, ROW_WATERMARK, Micros
from engine.functions.process import (
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    StatefulFunction,
    has_event_timers,
    has_processing_timers,
    states_of,
)
from engine.functions.row_class import RowClass
from engine.functions.states import BroadcastState
from engine.functions.ttl import TimeDomain
from engine.operators.contract import MAIN, Context, Operator
from engine.operators.late import behind, set_aside
from engine.operators.records.event_order import EventOrder, in_total_order
from engine.operators.records.expiry import Expiry
from engine.operators.records.rows import check_nulls, columns_of, rows_of
from engine.operators.records.slots import slots_of
from engine.operators.records.turn import Process, Setup, Turn
from engine.state.contract import TIME, StateDescriptor, StateKind
from engine.state.handles import Key, RowsHandle, TimersHandle, ValueHandle

Schema = Mapping[str, pl.DataType]

MOST_DUE = 50_000
"""So many timers are known to be due at once: their keys are read together, and fit into memory."""

# No attribute of a function can have these names, so no state of an author does.
_EVENT_TIMERS = "timers.event"
_PROCESSING_TIMERS = "timers.processing"
_WAITING = "rows.{port}"


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of rows, when they are no dicts."""

    takes: Sequence[RowClass | None] = ()
    """Of each input."""
    gives: Mapping[str, RowClass | None] = field(default_factory=dict)
    """Of each output, by tag."""


DICTS = Classes()


class _StatefulOperator(Operator):
    """Runs a function with states on keyed rows."""

    def __init__(
        self,
        function: StatefulFunction,
        label: str,
        keys: Sequence[Schema],
        schema: Schema,
        sides: Mapping[str, Schema],
        in_order_of: Sequence[Schema],
        classes: Classes,
    ) -> None:
        self.function = function
        self.label = label
        self.schema = dict(schema)
        self._sides = tuple(tuple(side) for side in keys)
        self._in_order_of = tuple(map(dict, in_order_of))
        self._waiting = tuple(
            _waiting(port, side, columns)
            for port, (side, columns) in enumerate(zip(keys, in_order_of, strict=False))
        )
        self._setup = Setup(
            function=function,
            step=f"{self.name} {label!r}",
            schemas={MAIN: self.schema, **sides},
            takes=classes.takes or (None, None),
            gives=classes.gives,
            states={
                name: StateDescriptor(name, state.kind, dict(keys[0]), state.columns)
                for name, state in states_of(function).items()
                if not isinstance(state, BroadcastState)
            },
            broadcast_states={
                name: StateDescriptor(name, state.kind, {}, state.columns)
                for name, state in states_of(function).items()
                if isinstance(state, BroadcastState)
            },
            event_timers=_timers(_EVENT_TIMERS, keys[0]) if has_event_timers(function) else None,
            processing_timers=_timers(_PROCESSING_TIMERS, keys[0])
            if has_processing_timers(function)
            else None,
        )

    @property
    def states(self) -> Sequence[StateDescriptor]:
        setup = self._setup
        timers = [each for each in (setup.event_timers, setup.processing_timers) if each]
        shared = setup.broadcast_states.values()
        return (*setup.states.values(), *shared, *timers, *self._waiting)

    @abstractmethod
    def _process(self, turn: Turn, port: int) -> Process:
        """The method that takes the rows of an input."""

    def open(self, ctx: Context) -> None:
        self._setup.expiries = {
            name: Expiry(state, cast("ValueHandle", ctx.state(self._setup.states[name])))
            for name, state in states_of(self.function).items()
            if state.ttl is not None
        }
        self._wake(ctx)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        if self._waiting:
            self._keep(frame, port, ctx)
            return
        made = self._setup.takes[port]
        check_nulls(frame, made, self._setup.step)
        columns = columns_of(frame)
        keys, slots = slots_of(columns, self._sides[port], frame.get_column(KEY_GROUP).to_list())
        times = columns.get(EVENT_TIME) or [None] * frame.height
        with self._turn(keys, ctx, frame) as turn:
            process = self._process(turn, port)
            turn.take_all(process, rows_of(columns, made), slots, times, _ages(frame, times))
        self._fire_overdue(ctx)

    def _fire_overdue(self, ctx: Context) -> None:
        """Timers that were registered behind the watermark fire at once."""
        if self._setup.event_timers is not None:
            self._advance(ctx.watermark, ctx, floor=ctx.watermark)

    def _keep(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Let rows wait for event time, but for those that are behind it."""
        check_nulls(frame, self._setup.takes[port], self._setup.step)
        in_time = set_aside(frame, behind(frame, ctx.watermark), port, ctx)
        cast("RowsHandle", ctx.state(self._waiting[port])).append(in_time)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        self._advance(time, ctx, floor=MIN_TIME)
        if time != MAX_TIME:
            self._sweep(TimeDomain.EVENT_TIME, time, ctx)

    def _advance(self, time: Micros, ctx: Context, floor: Micros) -> None:
        """Take waiting rows before `time` and timers up to it, in order of event time.

        In steps that fit into memory, which nobody can see: what a step leaves is behind it.
        """
        timers = self._event_timers(ctx)
        at: int = MIN_TIME - 1
        while at < time:
            at = time
            for descriptor in self._waiting:
                at = cast("RowsHandle", ctx.state(descriptor)).reach(Micros(at))
            due = [] if timers is None else timers.due(Micros(at), MOST_DUE)
            if timers is not None and len(due) == MOST_DUE:
                at = due[-1][0]
                due = timers.due(Micros(at))
            self._advance_to(Micros(at), due, ctx, floor)

    def _advance_to(
        self, time: Micros, due: Sequence[tuple[Micros, Key]], ctx: Context, floor: Micros
    ) -> None:
        order = self._ripe(time, ctx)
        order.add_keys(key for _, key in due)
        if not order.keys:
            return
        with self._turn(order.keys, ctx) as turn:
            processes = [self._process(turn, port) for port in range(len(self._sides))]
            turn.take_in_order(processes, order.rows(), time, floor, len(due))

    def _ripe(self, time: Micros, ctx: Context) -> EventOrder:
        """The rows of all inputs before `time`."""
        order = EventOrder()
        for port, descriptor in enumerate(self._waiting):
            frame = cast("RowsHandle", ctx.state(descriptor)).take_before(time)
            if frame is not None:
                made = self._setup.takes[port]
                frame = in_total_order(frame)
                order.add(port, frame, self._sides[port], self._in_order_of[port], made)
        return order

    def on_processing_time(self, now: Micros, ctx: Context) -> None:
        descriptor = self._setup.processing_timers
        if descriptor is not None:
            timers = cast("TimersHandle", ctx.state(descriptor))
            # Those that are registered meanwhile have their turn next time: input goes first.
            due = timers.due(now)
            if due:
                with self._turn(list(dict.fromkeys(key for _, key in due)), ctx) as turn:
                    turn.fire_processing(timers, due)
                self._fire_overdue(ctx)
        self._sweep(TimeDomain.PROCESSING_TIME, now, ctx)

    def _sweep(self, domain: TimeDomain, time: Micros, ctx: Context) -> None:
        for expiry in self._setup.expiries.values():
            if expiry.domain is domain:
                expiry.sweep(time)
        self._wake(ctx)

    def _wake(self, ctx: Context) -> None:
        """Ask to be called when the clock has reached the next timer or expiry."""
        times = [
            expiry.first
            for expiry in self._setup.expiries.values()
            if expiry.domain is TimeDomain.PROCESSING_TIME
        ]
        if self._setup.processing_timers is not None:
            first = cast("TimersHandle", ctx.state(self._setup.processing_timers)).first()
            times.append(first[0] if first is not None else MAX_TIME)
        if times and min(times) != MAX_TIME:
            ctx.wake(min(times))

    @contextmanager
    def _turn(
        self, keys: Sequence[Key], ctx: Context, batch: pl.DataFrame | None = None
    ) -> Iterator[Turn]:
        turn = Turn(self._setup, keys, ctx, batch)
        with turn.explained():
            yield turn
        turn.finish()
        self._wake(ctx)

    def _event_timers(self, ctx: Context) -> TimersHandle | None:
        descriptor = self._setup.event_timers
        return None if descriptor is None else cast("TimersHandle", ctx.state(descriptor))

    def describe(self) -> Mapping[str, str]:
        order = {"order": "event time"} if self._waiting else {}
        return {"function": self.label, "keys": ", ".join(self._sides[0]), **order}


class KeyedProcess(_StatefulOperator):
    """Runs a `KeyedProcessFunction`."""

    name: ClassVar[str] = "process"

    def __init__(
        self,
        function: KeyedProcessFunction,
        label: str,
        keys: Schema,
        schema: Schema,
        *,
        sides: Mapping[str, Schema] | None = None,
        in_order_of: Schema | None = None,
        classes: Classes = DICTS,
    ) -> None:
        """`sides`: columns of each side output. `in_order_of`: columns of the input, if the
        function takes its rows in order of event time.
        """
        waiting = () if in_order_of is None else (in_order_of,)
        super().__init__(function, label, (keys,), schema, sides or {}, waiting, classes)

    def _process(self, turn: Turn, port: int) -> Process:
        return cast("KeyedProcessFunction", turn.function).process


class CoProcess(_StatefulOperator):
    """Runs a `CoProcessFunction`: input 0 is left, 1 is right; state is kept by the left's keys."""

    name: ClassVar[str] = "co_process"

    def __init__(
        self,
        function: CoProcessFunction,
        label: str,
        keys: Schema,
        right_keys: Sequence[str],
        schema: Schema,
        *,
        sides: Mapping[str, Schema] | None = None,
        in_order_of: Sequence[Schema] = (),
        classes: Classes = DICTS,
    ) -> None:
        """`sides`: columns of each side output. `in_order_of`: columns of both inputs, if the
        function takes their rows in order of event time.
        """
        theirs = dict(zip(right_keys, keys.values(), strict=True))
        super().__init__(function, label, (keys, theirs), schema, sides or {}, in_order_of, classes)

    def _process(self, turn: Turn, port: int) -> Process:
        co = cast("CoProcessFunction", turn.function)
        return co.process_right if port else co.process_left


class KeyedBroadcastProcess(_StatefulOperator):
    """Runs a `KeyedBroadcastProcessFunction`: input 0 is keyed, 1 comes whole to all subtasks.

    Needs    an input 1 that is sent by one subtask, so that all get its rows in the same order.
    """

    name: ClassVar[str] = "keyed_broadcast_process"

    def __init__(
        self,
        function: KeyedBroadcastProcessFunction,
        label: str,
        keys: Schema,
        schema: Schema,
        *,
        sides: Mapping[str, Schema] | None = None,
        in_order_of: Sequence[Schema] = (),
        classes: Classes = DICTS,
    ) -> None:
        """`sides`: columns of each side output. `in_order_of`: columns of both inputs, if the
        function takes their rows in order of event time.
        """
        super().__init__(function, label, (keys, {}), schema, sides or {}, in_order_of, classes)

    def _process(self, turn: Turn, port: int) -> Process:
        if port:
            return cast("KeyedBroadcastProcessFunction", turn.broadcast_function).process_broadcast
        return cast("KeyedBroadcastProcessFunction", turn.function).process


def _timers(name: str, keys: Schema) -> StateDescriptor:
    return StateDescriptor(name, StateKind.TIMERS, dict(keys), {TIME: pl.Int64()})


def _waiting(port: int, keys: Schema, columns: Schema) -> StateDescriptor:
    others = {name: dtype for name, dtype in columns.items() if name not in keys}
    times = {EVENT_TIME: others.pop(EVENT_TIME)}
    return StateDescriptor(
        _WAITING.format(port=port),
        StateKind.ROWS,
        dict(keys),
        {**times, **others},
        dict.fromkeys(others),
    )


def _ages(frame: pl.DataFrame, times: Sequence[Micros | None]) -> Sequence[Micros]:
    """The time that a TTL goes by: of a late row, the watermark that it came behind (`ttl.py`)."""
    if ROW_WATERMARK in frame.columns:
        ages = frame.select(pl.max_horizontal(EVENT_TIME, ROW_WATERMARK))
        return ages.to_series().to_list()
    return [MIN_TIME if time is None else time for time in times]
