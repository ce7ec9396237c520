"""Window rows: windows of one key with a trigger, an evictor, or a function of all of their rows.

    rows ──late──▶ side output "late"
      └──▶ wait in state for their turn ──watermark──▶ panes, trigger ──firings──▶ results

Shapes   in   rows with `event_time` and `key_group`; without event time only global windows
         out  see `results.py`
Order    rows meet their trigger in order of their turns, see `assign.py`; results leave sorted by
         (turn, window_end, keys, window_start). Without event time rows meet it as they come, which
         is exempt from the law of the same output, as is what the clock decides.
Late     a row is late when its turn is at or after the end of its last window and the allowed
         lateness; in a session, of the window that it would make by itself. A row that is late for
         some of its windows only counts in the others.
Cost     rows wait as columns. A row is kept once per window that it is in; `agg` without a trigger
         or evictor keeps partials of slices instead.
Source   Flink's WindowOperator and EvictingWindowOperator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np
import polars as pl

from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, Micros
from engine.operators.contract import Context, Operator
from engine.operators.late import row_marks, set_aside
from engine.operators.windows.rows.assign import (
    BOUNDS,
    END,
    TURN,
    AnyWindow,
    Units,
    in_turns,
    lifetimes,
)
from engine.operators.windows.rows.contents import Contents
from engine.operators.windows.rows.results import Results, frame_of, result_columns
from engine.operators.windows.rows.sessions import SessionTurn, panes_of, sessions_of
from engine.operators.windows.rows.setup import (
    TIMER,
    Due,
    Setup,
    clock,
    due_events,
    reach_of_timers,
)
from engine.operators.windows.rows.turn import WindowTurn
from engine.state.contract import MAP_KEY, TIME, StateDescriptor, StateKind
from engine.state.handles import Key, RowsHandle
from engine.triggers import Trigger
from engine.windows import Session, Times

Schema = Mapping[str, pl.DataType]

_OWN_TIME = "row.time"
"""The event time of a waiting row: it waits for its turn, under the name of event time."""

_NONE = (0, 0)


class WindowRows(Operator):
    """Plays rows, timers and triggers of windows, and gives the results."""

    name: ClassVar[str] = "window"

    def __init__(
        self,
        keys: Schema,
        schema: Schema,
        window: AnyWindow,
        trigger: Trigger,
        contents: Contents,
        results: Results,
        allowed: Micros = Micros(0),  # noqa: B008  a number
    ) -> None:
        """`schema`: columns of the rows. `allowed`: lateness."""
        self.keys = dict(keys)
        self.window = window
        self.contents = contents
        self.results = results
        self.timed = EVENT_TIME in schema
        self._columns = dict(schema)
        panes = {**keys, **BOUNDS}
        others = {n: t for n, t in schema.items() if n not in keys and n != EVENT_TIME}
        waiting = {EVENT_TIME: pl.Int64(), _OWN_TIME: pl.Int64(), **others}
        self._waiting = StateDescriptor("rows", StateKind.ROWS, self.keys, waiting)
        self._setup = Setup(
            window=window,
            allowed=allowed,
            trigger=trigger,
            step=f"trigger {str(trigger)!r}",
            columns=tuple(schema),
            states={
                name: StateDescriptor(f"trigger.{name}", state.kind, panes, state.columns)
                for name, state in trigger.states.items()
            },
            event_timers=_timers("timers.event", panes),
            processing_timers=_timers("timers.processing", panes) if trigger.hears_clock else None,
            lives=_timers("timers.lives", panes),
            sessions=StateDescriptor(
                "sessions", StateKind.MAP, self.keys, {MAP_KEY: pl.Int64(), END: pl.Int64()}
            ),
        )

    @property
    def allowed_lateness(self) -> Micros:
        """How long after its end a window may still be corrected."""
        return self._setup.allowed

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """Waiting rows, what windows hold, states and timers of the trigger, open sessions."""
        setup = self._setup
        optional = [
            self._waiting if self.timed else None,
            setup.processing_timers,
            setup.sessions if isinstance(self.window, Session) else None,
        ]
        given = [each for each in optional if each is not None]
        timers = setup.event_timers, setup.lives
        return (self.contents.state, *setup.states.values(), *timers, *given)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Columns and types of the results."""
        return result_columns(self.window, self.keys, self.results.types, timed=self.timed)

    def open(self, ctx: Context) -> None:
        """Go on waiting for the clock."""
        self._wake(ctx)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Set late rows aside, and let the others wait for their turn."""
        if not self.timed:
            units = in_turns(frame, self.window, list(self.keys), 0)
            self._play(units, [], ctx.watermark, ctx)
            return
        turns = _turns(frame, ctx.watermark)
        times = frame.get_column(EVENT_TIME).to_numpy()
        last = lifetimes(self.window, times)
        # Not turns >= last + allowed: the end of a global window is the largest number there is.
        late = (turns >= last) & (turns - self._setup.allowed >= last)
        if late.any():
            frame, turns = set_aside(frame, pl.Series(late), port, ctx), turns[~late]
        waiting = frame.rename({EVENT_TIME: _OWN_TIME}).with_columns(pl.Series(EVENT_TIME, turns))
        cast("RowsHandle", ctx.state(self._waiting)).append(waiting)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Play the rows before `time` and the timers up to it.

        In steps that fit into memory, which nobody can see: what a step leaves is behind it.
        """
        waiting = cast("RowsHandle", ctx.state(self._waiting)) if self.timed else None
        at: int = MIN_TIME - 1
        while at < time:
            at = time if waiting is None else waiting.reach(time)
            at = reach_of_timers(self._setup, Micros(at), ctx)
            rows = None if waiting is None else waiting.take_before(Micros(at))
            due = due_events(self._setup, Micros(at), ctx)
            if rows is not None or due:
                self._play(self._units(rows), due, Micros(at), ctx)

    def _units(self, waiting: pl.DataFrame | None) -> Units:
        if waiting is None:
            return Units(pl.DataFrame(schema={**self._columns, TURN: pl.Int64()}), {})
        rows = waiting.rename({EVENT_TIME: TURN, _OWN_TIME: EVENT_TIME})
        return in_turns(rows, self.window, list(self.keys), self._setup.allowed)

    def _play(self, units: Units, due: Sequence[Due], until: Micros, ctx: Context) -> None:
        agendas: dict[Key, list[Due]] = defaultdict(list)
        for each in due:
            agendas[self._unit(each[2])].append(each)

        def play(turn: WindowTurn) -> None:
            for unit in dict.fromkeys([*units.spans, *agendas]):
                turn.play(unit, units.spans.get(unit, _NONE), agendas.get(unit, ()))

        self._turn(units, due, until, ctx, play)

    def _unit(self, pane: Key) -> Key:
        return pane[:-2] if isinstance(self.window, Session) else pane

    def _turn(
        self,
        units: Units,
        due: Iterable[Due],
        until: Micros,
        ctx: Context,
        play: Callable[[WindowTurn], None],
    ) -> None:
        turn: WindowTurn
        rows = units.rows.select(self._setup.columns)
        setup = self._setup
        if isinstance(self.window, Session):
            sessions = sessions_of(setup, units, due, ctx)
            contents = self.contents.turn(rows, panes_of(sessions), ctx)
            turn = SessionTurn(setup, units, sessions, contents, until, ctx)
        else:
            panes = {*units.spans, *(pane for _, _, pane in due)}
            contents = self.contents.turn(rows, panes, ctx)
            turn = WindowTurn(setup, units, panes, contents, until, ctx)
        with turn.explained():
            play(turn)
        turn.finish()
        if turn.firings:
            ctx.emit(frame_of(self.results, turn.firings, self.keys, timed=self.timed))
        self._wake(ctx)

    def on_processing_time(self, now: Micros, ctx: Context) -> None:
        """Play the timers of the clock."""
        timers = clock(self._setup, ctx)
        due = [] if timers is None else [(int(time), TIMER, pane) for time, pane in timers.due(now)]

        def play(turn: WindowTurn) -> None:
            for time, _, pane in due:
                turn.play_clock(self._unit(pane), pane, Micros(time))

        if due:
            self._turn(self._units(None), due, ctx.watermark, ctx, play)

    def _wake(self, ctx: Context) -> None:
        timers = clock(self._setup, ctx)
        first = None if timers is None else timers.first()
        if first is not None and first[0] != MAX_TIME:
            ctx.wake(first[0])

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        evictor: Any = getattr(self.contents, "evictor", None)
        evicts = {} if evictor is None else {"evictor": str(evictor)}
        return {
            "keys": ", ".join(self.keys),
            "window": str(self.window),
            "trigger": str(self._setup.trigger),
            **evicts,
            "result": self.results.text,
        }


def _turns(frame: pl.DataFrame, watermark: Micros) -> Times:
    """When rows have their turn. The watermark is above a row's only after a split was idle."""
    times = frame.get_column(EVENT_TIME).to_numpy()
    marks = row_marks(frame, watermark)
    turns: Times = np.maximum(times, np.int64(watermark) if marks is None else marks)
    return turns


def _timers(name: str, panes: Schema) -> StateDescriptor:
    return StateDescriptor(name, StateKind.TIMERS, dict(panes), {TIME: pl.Int64()})
