"""One call of the runtime, as windows and their triggers see it.

    rows of a pane ─────┐  by turn   ┌──▶ on_elements ───┐
    timers of the pane ─┼───────────▶┼──▶ on_event_time ─┼──▶ firings, purged panes
    end of its life ────┘            └──▶ clear          ┘

Order    a timer of time t comes after all rows whose turn is before t; the end of a window's life
         comes after its timers. Panes know nothing of each other, so they are played one by one.
Cost     some microseconds per pane and call, and per row only when the trigger looks at rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Any, cast

import numpy as np
import polars as pl

from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, Micros
from engine.errors import FunctionError, UserError
from engine.functions import ListState, ReducingState, State
from engine.functions.bound import bind
from engine.functions.cells import ABSENT, Cells, Current
from engine.operators.contract import Context
from engine.operators.expressions import raised, shortened
from engine.operators.records.rows import Row, columns_of, rows_of
from engine.operators.records.turn import MAX_FIRINGS
from engine.operators.windows.rows.assign import TURN, Units
from engine.operators.windows.rows.contents import ContentsTurn
from engine.operators.windows.rows.setup import END_OF_LIFE, TIMER, Due, Firing, Setup, clock
from engine.state.handles import Key, TimersHandle, ValueHandle
from engine.triggers import TriggerContext, TriggerResult


class WindowTurn:
    """Plays rows and timers of panes."""

    def __init__(
        self,
        setup: Setup,
        units: Units,
        panes: Iterable[Key],
        contents: ContentsTurn,
        until: Micros,
        ctx: Context,
    ) -> None:
        """`panes`: those of which state may hold something. `until`: how far event time is."""
        self.firings: list[Firing] = []
        self._setup = setup
        self._ctx = ctx
        self._contents = contents
        self._until = until
        self._times, self._turns = _times(units.rows)
        self._rows: Sequence[Row] = ()
        if setup.trigger.reads_rows and units.rows.height:
            # Rows one by one: that is what the author's trigger takes.
            self._rows = list(rows_of(columns_of(units.rows.select(setup.columns))))
        self._current = Current(processing_time=ctx.now)
        self._pane: Key = ()
        self._panes = list(panes)
        self._slots = {pane: slot for slot, pane in enumerate(self._panes)}
        self._cells = {
            name: Cells(cast("ValueHandle", ctx.state(each)), self._panes, self._current)
            for name, each in setup.states.items()
        }
        declared = setup.trigger.states
        self._states = {
            name: bind(name, declared[name], cells, self._current)
            for name, cells in self._cells.items()
        }
        self._trigger = setup.trigger.with_states(self._states)
        self._context = TriggerContext(self, ctx.now)
        self._event_timers = cast("TimersHandle", ctx.state(setup.event_timers))
        self._processing_timers = clock(setup, ctx)
        self._lives = cast("TimersHandle", ctx.state(setup.lives))
        self._agenda: list[Due] = []
        self._reached = int(MIN_TIME)
        self._left = 0
        self._merging: Sequence[Key] = ()
        self._given: object = None

    def play(
        self, unit: Key, span: tuple[int, int], due: Sequence[Due], floor: int = MIN_TIME
    ) -> None:
        """Play rows and timers of a unit, in the order of their turns."""
        self._agenda = list(due)
        heapify(self._agenda)
        self._reached = floor
        self._left = MAX_FIRINGS + len(due)
        at, hi = span
        while (first := self._first_due()) is not None or at < hi:
            bound = None if first is None else first[0]
            if at < hi and (bound is None or self._turns[at] < bound):
                limit = hi
                if bound is not None:
                    limit = at + int(np.searchsorted(self._turns[at:hi], bound))
                at = self._take_next(unit, at, limit)
            else:
                self._fire_due(heappop(self._agenda))

    def play_clock(self, unit: Key, pane: Key, time: Micros) -> None:
        """Play a processing-time timer, and what it makes due."""
        assert self._processing_timers is not None
        self._processing_timers.remove(time, pane)
        if not self._is_alive(pane):
            return
        self._agenda = []
        self._reached = self._until
        self._begin(pane, time)
        self._given = {"processing timer": time}
        self._apply(self._trigger.on_processing_time(time, self._context), pane, by_row=True)
        self.play(unit, (0, 0), self._agenda, self._until)

    def _take_next(self, unit: Key, at: int, limit: int) -> int:
        """Play the next rows; of a key and window, the unit is the pane itself."""
        return self._take(unit, at, limit)

    def _take(self, pane: Key, at: int, limit: int) -> int:
        self._live(pane)
        turns = self._turns[at:limit]
        self._reached = int(turns[0])
        self._begin(pane, Micros(int(self._times[at])))
        row = self._rows[at] if self._rows else {}
        self._given = row
        taken, outcome = self._trigger.on_elements(turns, row, self._context)
        self._reached = int(turns[taken - 1])
        self._contents.add(pane, at, at + taken)
        self._apply(outcome, pane, by_row=True)
        return at + taken

    def _live(self, pane: Key) -> None:
        end = self._setup.life(pane)
        if end != MAX_TIME and not self._lives.holds(Micros(end), pane):
            self._lives.add(Micros(end), pane)
            if end <= self._until:
                heappush(self._agenda, (end, END_OF_LIFE, pane))

    def _is_alive(self, pane: Key) -> bool:
        end = self._setup.life(pane)
        return end == MAX_TIME or self._lives.holds(Micros(end), pane)

    def _first_due(self) -> Due | None:
        """The first of the agenda that was not taken back."""
        while self._agenda:
            time, kind, pane = self._agenda[0]
            timers = self._lives if kind == END_OF_LIFE else self._event_timers
            if timers.holds(Micros(time), pane):
                if self._is_alive(pane):
                    return self._agenda[0]
                timers.remove(Micros(time), pane)
            heappop(self._agenda)
        return None

    def _fire_due(self, due: Due) -> None:
        time, kind, pane = Micros(due[0]), due[1], due[2]
        self._reached = max(self._reached, time)
        self._begin(pane, time)
        if kind == END_OF_LIFE:
            self._lives.remove(time, pane)
            self._clear(pane)
            return
        self._event_timers.remove(time, pane)
        self._left -= 1
        if self._left < 0:
            msg = (
                f"{self._setup.step} never ends: each timer registers the next, the last at "
                f"{time}; register one in on_event_time only while rows keep coming"
            )
            raise FunctionError(msg)
        self._given = {"timer": time}
        self._apply(self._trigger.on_event_time(time, self._context), pane, by_row=False)

    def _begin(self, pane: Key, time: Micros) -> None:
        self._look_at(pane)
        context = self._context
        context.key = pane[1:-2]
        context.start, context.end = pane[-2], pane[-1]
        context.event_time = time
        context.watermark = Micros(self._reached)

    def _look_at(self, pane: Key) -> None:
        """Have the states be those of a pane."""
        slot = self._slots.get(pane)
        if slot is None:
            slot = self._slots[pane] = len(self._panes)
            self._panes.append(pane)
            for cells in self._cells.values():
                cells.values.append(ABSENT)
        self._pane = pane
        self._current.slot = slot

    def _apply(self, outcome: TriggerResult, pane: Key, *, by_row: bool) -> None:
        if not isinstance(outcome, TriggerResult):
            msg = f"{self._setup.step} gave {shortened(outcome)}; return a TriggerResult"
            raise FunctionError(msg)
        if outcome.fires:
            content = self._contents.fire(pane)
            if content is not None:
                self.firings.append(Firing(self._reached, by_row, pane, content))
        if outcome.purges:
            self._contents.purge(pane)

    def _clear(self, pane: Key) -> None:
        """Forget a window that is over."""
        self._trigger.clear(self._context)
        for state in self._states.values():
            state.clear()
        self._contents.purge(pane)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the trigger raises into a FunctionError that shows what it was given."""
        try:
            yield
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            msg = (
                f"{self._setup.step} {raised(error)}: key {self._context.key}, given "
                f"{shortened(self._given)}; fix the trigger"
            )
            raise FunctionError(msg) from error

    def finish(self) -> None:
        """Write everything back, and put the firings in order."""
        for cells in self._cells.values():
            cells.write_back()
        self._contents.finish()
        # Stable: firings of one pane and time stay in their order.
        self.firings.sort(key=lambda each: (each.at, each.pane[-1], each.pane[1:]))

    # What a trigger asks for.

    def set_timer(self, time: Micros, *, processing: bool) -> None:
        """Add a timer of the current window."""
        if isinstance(time, bool) or not isinstance(time, int) or not MIN_TIME <= time <= MAX_TIME:
            msg = (
                f"{self._setup.step} registers a timer at no time: got {time!r}; "
                "pass µs since 1970, e.g. ctx.event_time + 60_000_000"
            )
            raise FunctionError(msg)
        pane = self._pane
        if processing:
            self._clock().add(time, pane)
        elif time <= self._setup.life(pane):
            self._event_timers.add(time, pane)
            if time <= self._until:
                heappush(self._agenda, (time, TIMER, pane))

    def delete_timer(self, time: Micros, *, processing: bool) -> None:
        """Remove a timer of the current window."""
        timers = self._clock() if processing else self._event_timers
        timers.remove(time, self._pane)

    def _clock(self) -> TimersHandle:
        if self._processing_timers is None:
            msg = (
                f"{self._setup.step} uses a processing-time timer that nobody hears: it has no "
                "on_processing_time; define it"
            )
            raise FunctionError(msg)
        return self._processing_timers

    def merge_state(self, state: State) -> None:
        """Fold the state of the merged windows into that of the current one."""
        union = self._pane
        for pane in self._merging:
            self._look_at(pane)
            held = state.get() if isinstance(state, ReducingState | ListState) else None
            self._look_at(union)
            match state:
                case ReducingState() if held is not None:
                    state.add(held)
                case ListState() if held:
                    state.add_all(held)
                case ReducingState() | ListState():
                    pass
                case _:
                    msg = f"{self._setup.step} merges {state!r}, which is no reducing or list state"
                    raise FunctionError(msg)


def _times(rows: pl.DataFrame) -> tuple[Any, Any]:
    """Event times and turns; without event time all rows have the same turn."""
    if TURN not in rows.columns:
        same = np.full(rows.height, MIN_TIME)
        return same, same
    return rows.get_column(EVENT_TIME).to_numpy(), rows.get_column(TURN).to_numpy()
