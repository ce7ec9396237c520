"""A turn: the states of some keys are read, a user function runs, the changes are written.

    keys --get_many--> bound states --> row, row, timer, row … --> put_many, rows out

Cost     one read and one write of state per key and turn, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, cast

import polars as pl

from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, ROW_WATERMARK, Micros
from engine.errors import FunctionError
from engine.functions.bound import bind, bind_broadcast
from engine.functions.cells import Cells, Current
from engine.functions.context import FunctionContext
from engine.functions.process import Row, Rows, StatefulFunction, bound, states_of
from engine.operators.contract import MAIN, Context
from engine.operators.expiry import Expiry
from engine.operators.rows import RowsOut
from engine.state.contract import StateDescriptor
from engine.state.handles import Key, TimersHandle, ValueHandle

Process = Callable[[Row, FunctionContext], Rows]

NO_KEY: Key = (0,)
"""Key of what is the same on all subtasks: a key group, and no columns."""

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
    states: Mapping[str, StateDescriptor]
    event_timers: StateDescriptor | None
    processing_timers: StateDescriptor | None
    broadcast_states: Mapping[str, StateDescriptor] = field(default_factory=dict)
    expiries: Mapping[str, Expiry] = field(default_factory=dict)
    """Of the states with a TTL; made when the operator opens."""


class Turn:
    """One call of the runtime, as the function sees it."""

    def __init__(self, setup: Setup, keys: Iterable[Key], ctx: Context) -> None:
        self._setup = setup
        self._ctx = ctx
        self._current = Current()
        self._current.processing_time = ctx.now
        declared = states_of(setup.function)
        self._cells = self._fetch(setup.states, dict.fromkeys(keys), self._current)
        states = {
            name: bind(name, declared[name], cells, self._current)
            for name, cells in self._cells.items()
        }
        self._shared = self._fetch(setup.broadcast_states, [NO_KEY], Current(NO_KEY))
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
        self._outs = {tag: RowsOut(setup.step, schema) for tag, schema in setup.schemas.items()}
        self._main = self._outs[MAIN]
        self._times: list[int | None] = []
        self._marks: list[int | None] = []

    def _fetch(
        self, states: Mapping[str, StateDescriptor], keys: Iterable[Key], current: Current
    ) -> Mapping[str, Cells]:
        return {
            name: Cells(cast("ValueHandle", self._ctx.state(descriptor)), keys, current)
            for name, descriptor in states.items()
        }

    def take(
        self, process: Process, row: Row, key: Key, time: Micros | None, mark: Micros | None
    ) -> None:
        """Give the function a row. `mark`: the row's own watermark, when it came behind it."""
        self._begin(key, time, mark)
        self._main.row = row
        self._call(process(row, self.context))

    def take_at(self, process: Process, row: Row, key: Key, time: Micros) -> None:
        """Give the function a row in its turn of event time: nothing before it can follow."""
        self.context.watermark = time
        self.take(process, row, key, time, None)

    def fire(self, key: Key, time: Micros, at: Micros) -> None:
        """Give the function an event-time timer; its rows get the event time `at`."""
        self._begin(key, at, None)
        self.context.watermark = at
        self._main.row = {"timer": time, "key": key[1:]}
        self._call(self.function.on_timer(time, self.context))

    def fire_processing(self, key: Key, time: Micros) -> None:
        """Give the function a processing-time timer; its rows get the watermark as event time."""
        reached = self._ctx.watermark
        self._begin(key, None if reached == MIN_TIME else reached, None)
        self._main.row = {"processing timer": time, "key": key[1:]}
        self._call(self.function.on_processing_timer(time, self.context))

    def _begin(self, key: Key, time: Micros | None, mark: Micros | None) -> None:
        self._current.key = key
        # A late row's time is the watermark that it came behind: see `ttl.py`.
        reached = MIN_TIME if time is None else time
        self._current.event_time = reached if mark is None else max(reached, mark)
        self.context.key = key[1:]
        self.context.event_time = time
        self._times.append(time)
        self._marks.append(mark)

    def _call(self, given: Rows) -> None:
        origin = len(self._times) - 1
        for row in given or ():
            self._main.add(row, origin)

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
        source = self._stamps()
        for tag, out in self._outs.items():
            if out.height:
                self._ctx.emit(out.frame(source), tag)

    def _stamps(self) -> pl.DataFrame:
        """Reserved columns, a row for each row or timer of this turn."""
        columns = []
        if self._times and self._times[0] is not None:
            columns.append(pl.Series(EVENT_TIME, self._times, dtype=pl.Int64))
        if any(mark is not None for mark in self._marks):
            columns.append(pl.Series(ROW_WATERMARK, self._marks, dtype=pl.Int64))
        return pl.DataFrame(columns)

    # What a function asks for.

    def emit(self, row: Mapping[str, Any], tag: str) -> None:
        """Send a row to an output."""
        out = self._outs.get(tag)
        if out is None:
            known = ", ".join(sorted(self._outs))
            msg = (
                f"{self._setup.step} emits to the unknown output {tag!r}: it has {known}; "
                "declare it in side_outputs, with its columns"
            )
            raise FunctionError(msg)
        out.row = self._main.row
        out.add(row, len(self._times) - 1)

    def set_timer(self, time: Micros, *, processing: bool) -> None:
        """Add a timer of the current key."""
        if isinstance(time, bool) or not isinstance(time, int) or not MIN_TIME <= time < MAX_TIME:
            msg = (
                f"{self._setup.step} registers a timer at no time: got {time!r}; "
                "pass µs since 1970, e.g. ctx.event_time + 60_000_000"
            )
            raise FunctionError(msg)
        self._timers(processing=processing).add(time, self._current.key)

    def delete_timer(self, time: Micros, *, processing: bool) -> None:
        """Remove a timer of the current key."""
        self._timers(processing=processing).remove(time, self._current.key)

    def _timers(self, *, processing: bool) -> TimersHandle:
        setup = self._setup
        if not self.context.key:
            msg = f"{setup.step} uses a timer of no key; broadcast rows cannot have any"
            raise FunctionError(msg)
        descriptor = setup.processing_timers if processing else setup.event_timers
        if descriptor is None:
            method = "on_processing_timer" if processing else "on_timer"
            msg = f"{setup.step} uses timers that nobody hears: it has no {method}; define it"
            raise FunctionError(msg)
        return cast("TimersHandle", self._ctx.state(descriptor))


def fire_until(turn: Turn, timers: TimersHandle, time: Micros, floor: Micros, limit: int) -> Micros:
    """Fire all timers up to `time`, also those that are registered meanwhile.

    `floor`: what event time had reached before; rows of a timer that lies further back get this.
    `limit`: how many may be due. Returns what event time has reached now.
    """
    fired = 0
    while (timer := timers.first()) is not None and timer[0] <= time:
        at, key = timer
        timers.remove(at, key)
        floor = max(at, floor)
        turn.fire(key, at, floor)
        fired += 1
        if fired > limit + MAX_FIRINGS:
            msg = (
                f"timers never end: {fired} fired at one watermark, the last at {at}; register a "
                "timer in on_timer only while rows keep coming"
            )
            raise FunctionError(msg)
    return floor
