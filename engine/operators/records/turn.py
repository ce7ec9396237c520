"""A turn: the states of some keys are read, a user function runs, the changes are written.

    keys --get_many--> bound states --> row, row, timer, row … --> put_many, rows out

Cost     one read and one write of state per key and turn, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, cast

import polars as pl

from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, Micros
from engine.errors import FunctionError
from engine.functions.bound import bind, bind_broadcast
from engine.functions.cells import Cells, Current
from engine.functions.context import FunctionContext
from engine.functions.process import Row, Rows, StatefulFunction, bound, states_of
from engine.functions.row_class import RowClass
from engine.operators.contract import MAIN, Context
from engine.operators.records.event_order import Arrived
from engine.operators.records.expiry import Expiry
from engine.operators.records.rows import row_at
from engine.operators.records.rows_out import RowsOut
from engine.state.contract import StateDescriptor
from engine.state.handles import Key, TimersHandle, ValueHandle

Process = Callable[[Row, FunctionContext], Rows]

NO_KEY: Key = (0,)
"""Key of what is the same on all subtasks: a key group, and no columns."""

_NEVER = Micros(MAX_TIME + 1)

MAX_FIRINGS = 100_000
"""So many timers that were registered while the last watermark fires are a mistake: each registers
the next, and there is no end."""


@dataclass(slots=True)
class Setup:
    """What all turns of an operator have in common."""

    function: StatefulFunction
    step: str
    """The operator, for messages: process 'Amplifier'."""
    schemas: Mapping[str, Mapping[str, pl.DataType]]
    """Columns of each output, by tag."""
    takes: Sequence[RowClass | None]
    """The classes of the rows of each input; None for dicts."""
    gives: Mapping[str, RowClass | None]
    """Those of each output, by tag; dicts for those that are not there."""
    states: Mapping[str, StateDescriptor]
    event_timers: StateDescriptor | None
    processing_timers: StateDescriptor | None
    broadcast_states: Mapping[str, StateDescriptor] = field(default_factory=dict)
    expiries: Mapping[str, Expiry] = field(default_factory=dict)
    """Of the states with a TTL; made when the operator opens."""


class Turn:
    """One call of the runtime, as the function sees it."""

    def __init__(
        self, setup: Setup, keys: Sequence[Key], ctx: Context, batch: pl.DataFrame | None = None
    ) -> None:
        """`keys`: all that the function may meet, each once. `batch`: the rows of `take_all`."""
        self._setup = setup
        self._ctx = ctx
        self._keys = keys
        self._current = Current(processing_time=ctx.now)
        declared = states_of(setup.function)
        # Rows that are broadcast have no key, and no part in keyed state.
        self._cells = self._fetch(setup.states, keys, self._current, without=NO_KEY)
        states = {
            name: bind(name, declared[name], cells, self._current)
            for name, cells in self._cells.items()
        }
        self._shared = self._fetch(setup.broadcast_states, [NO_KEY], Current())
        read, written = (
            {
                name: bind_broadcast(name, declared[name], cells, writable=writable)
                for name, cells in self._shared.items()
            }
            for writable in (False, True)
        )
        self.function = bound(setup.function, {**states, **read})
        self.broadcast_function = bound(setup.function, written)
        self.context = FunctionContext(self, ctx.watermark, ctx.now)
        self._batch = batch
        self._causes: list[object] = []
        """What else the function is called with: single rows, and descriptions of timers."""
        self._times: list[int | None] = []
        """The event time of each."""
        self._outs = {
            tag: RowsOut(setup.step, schema, self._cause, setup.gives.get(tag))
            for tag, schema in setup.schemas.items()
        }
        self._main = self._outs[MAIN]
        # Asked for once: each row may register a timer.
        self._event_timers = self._handle(setup.event_timers)
        self._processing_timers = self._handle(setup.processing_timers)
        self._next_timer = _NEVER
        """No event-time timer comes before this."""

    def _handle(self, descriptor: StateDescriptor | None) -> TimersHandle | None:
        return None if descriptor is None else cast("TimersHandle", self._ctx.state(descriptor))

    def _fetch(
        self,
        states: Mapping[str, StateDescriptor],
        keys: Sequence[Key],
        current: Current,
        without: Key | None = None,
    ) -> Mapping[str, Cells]:
        stored = [key for key in keys if key != without]
        return {
            name: Cells(cast("ValueHandle", self._ctx.state(descriptor)), keys, current, stored)
            for name, descriptor in states.items()
        }

    def _cause(self, origin: int) -> object:
        if self._batch is not None:
            return row_at(self._batch, origin)
        # What fails between two calls comes of the one before.
        return self._causes[min(origin, len(self._causes) - 1)] if self._causes else "none"

    @cached_property
    def _slots(self) -> Mapping[Key, int]:
        return {key: slot for slot, key in enumerate(self._keys)}

    def take_all(
        self,
        process: Process,
        rows: Iterable[Row],
        slots: Iterable[int],
        times: Iterable[Micros | None],
        ages: Iterable[Micros],
    ) -> None:
        """Give the function the rows of the batch, as they came.

        For each row `slots` says which key it has, `times` its event time, and `ages` the time that
        a TTL goes by: for a late row, the watermark that it came behind.
        """
        self._main.collect(self._outcomes(process, zip(rows, slots, times, ages, strict=True)))

    def _outcomes(
        self, process: Process, rows: Iterable[tuple[Row, int, Micros | None, Micros]]
    ) -> Iterator[Rows]:
        current, context = self._current, self.context
        for row, slot, time, age in rows:
            current.slot, current.event_time = slot, age
            context.event_time = time
            yield process(row, context)

    def take_in_order(
        self,
        processes: Sequence[Process],
        rows: Iterable[Arrived],
        until: Micros,
        floor: Micros,
        limit: int,
    ) -> None:
        """Give the function rows and timers up to `until`, in order of event time.

        `processes`: the method for each input. `floor`: what event time had reached before; what a
        timer that lies further back gives gets this. `limit`: how many timers may be due.
        """
        self._main.collect(self._outcomes_in_order(processes, rows, until, floor, limit))

    def _outcomes_in_order(
        self,
        processes: Sequence[Process],
        rows: Iterable[Arrived],
        until: Micros,
        floor: Micros,
        limit: int,
    ) -> Iterator[Rows]:
        current, context = self._current, self.context
        self._note_next_timer()
        for port, row, slot, time in rows:
            if self._next_timer <= time:
                yield from self._fire_until(time, floor, limit)
            floor = time
            current.slot, current.event_time = slot, time
            # Nothing before this row can follow it.
            context.event_time = context.watermark = time
            self._causes.append(row)
            self._times.append(time)
            yield processes[port](row, context)
        if self._next_timer <= until:
            yield from self._fire_until(until, floor, limit)

    def _fire_until(self, time: Micros, floor: Micros, limit: int) -> Iterator[Rows]:
        """Fire all timers up to `time`, also those that are registered meanwhile."""
        timers = self._timers(processing=False)
        for fired in count(1):
            timer = timers.first()
            if timer is None or timer[0] > time:
                break
            if fired > limit + MAX_FIRINGS:
                msg = (
                    f"timers never end: {fired} fired at one watermark, the last at {timer[0]}; "
                    "register a timer in on_timer only while rows keep coming"
                )
                raise FunctionError(msg)
            timers.remove(*timer)
            floor = max(timer[0], floor)
            self._begin("timer", timer, floor)
            self.context.watermark = floor
            yield self.function.on_timer(timer[0], self.context)
        self._note_next_timer()

    def _note_next_timer(self) -> None:
        if self._setup.event_timers is not None:
            first = self._timers(processing=False).first()
            self._next_timer = _NEVER if first is None else first[0]

    def fire_processing(self, timers: TimersHandle, due: Iterable[tuple[Micros, Key]]) -> None:
        """Give the function processing-time timers; what they give gets the watermark as its event
        time.
        """
        self._main.collect(self._outcomes_of(timers, due))

    def _outcomes_of(
        self, timers: TimersHandle, due: Iterable[tuple[Micros, Key]]
    ) -> Iterator[Rows]:
        reached = None if self._ctx.watermark == MIN_TIME else self._ctx.watermark
        for time, key in due:
            # One of those before it may have taken it back.
            if timers.holds(time, key):
                timers.remove(time, key)
                self._begin("processing timer", (time, key), reached)
                yield self.function.on_processing_timer(time, self.context)

    def _begin(self, kind: str, timer: tuple[Micros, Key], time: Micros | None) -> None:
        at, key = timer
        self._current.slot = self._slots[key]
        self._current.event_time = MIN_TIME if time is None else time
        self.context.event_time = time
        self._causes.append({kind: at, "key": key[1:]})
        self._times.append(time)

    def explained(self) -> AbstractContextManager[None]:
        """Turn what the function raises into a FunctionError that shows its row."""
        return self._main.explained()

    def finish(self) -> None:
        """Write the states back, and send all rows."""
        for name, cells in self._cells.items():
            changes = cells.write_back()
            expiry = self._setup.expiries.get(name)
            if expiry is not None:
                expiry.note(changes)
        for cells in self._shared.values():
            cells.write_back()
        source = self._stamps() if self._batch is None else self._batch
        for tag, out in self._outs.items():
            if out.height:
                self._ctx.emit(out.frame(source), tag)

    def _stamps(self) -> pl.DataFrame:
        """Event times, a row for each row or timer of this turn."""
        if not self._times or self._times[0] is None:
            return pl.DataFrame()
        return pl.DataFrame([pl.Series(EVENT_TIME, self._times, dtype=pl.Int64)])

    # What a function asks for.

    @property
    def key(self) -> tuple[Any, ...]:
        """The values of the current key."""
        return self._keys[self._current.slot][1:]

    def emit(self, row: Any, tag: str) -> None:
        """Send a row to an output."""
        out = self._outs.get(tag)
        if out is None:
            known = ", ".join(sorted(self._outs))
            msg = (
                f"{self._setup.step} emits to the unknown output {tag!r}: it has {known}; "
                "declare it in side_outputs, with its columns"
            )
            raise FunctionError(msg)
        out.origin = self._main.origin
        out.add(row)

    def set_timer(self, time: Micros, *, processing: bool) -> None:
        """Add a timer of the current key."""
        if isinstance(time, bool) or not isinstance(time, int) or not MIN_TIME <= time < MAX_TIME:
            msg = (
                f"{self._setup.step} registers a timer at no time: got {time!r}; "
                "pass µs since 1970, e.g. ctx.event_time + 60_000_000"
            )
            raise FunctionError(msg)
        self._check_key()
        self._timers(processing=processing).add(time, self._keys[self._current.slot])
        if not processing:
            self._next_timer = min(self._next_timer, time)

    def delete_timer(self, time: Micros, *, processing: bool) -> None:
        """Remove a timer of the current key."""
        self._check_key()
        self._timers(processing=processing).remove(time, self._keys[self._current.slot])

    def _check_key(self) -> None:
        if len(self._keys[self._current.slot]) == 1:
            msg = (
                f"{self._setup.step} uses a timer of no key; rows that are broadcast or not keyed "
                "cannot have any"
            )
            raise FunctionError(msg)

    def _timers(self, *, processing: bool) -> TimersHandle:
        timers = self._processing_timers if processing else self._event_timers
        if timers is None:
            method = "on_processing_timer" if processing else "on_timer"
            msg = f"{self._setup.step} uses timers that nobody hears: it has no {method}; define it"
            raise FunctionError(msg)
        return timers
