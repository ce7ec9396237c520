"""Sessions: windows of a key that become one when a row lies less than a gap from each.

    open sessions   [0 ········· 12)         [20 ······ 31)
    a row                       [11 ········ 21)               gap 10: it meets both
    becomes         [0 ····························· 31)

Order    rows of a key are played one at a time: each may move the bounds of its window, which is
         another pane then. A row joins sessions that are not over at its turn. When the trigger
         only awaits the end, as many rows are played at once as a session grows by.
Source   Akidau et al., The Dataflow Model, VLDB 2015, section 2.2.1; Flink's merging windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from engine.elements import Micros
from engine.operators.contract import Context
from engine.operators.windows.rows.assign import Units
from engine.operators.windows.rows.contents import ContentsTurn
from engine.operators.windows.rows.setup import Due, Setup
from engine.operators.windows.rows.turn import WindowTurn
from engine.state.handles import DELETED, Key, ValueHandle
from engine.windows import Session


class SessionTurn(WindowTurn):
    """Plays rows and timers of keys; a unit is a key."""

    def __init__(
        self,
        setup: Setup,
        units: Units,
        sessions: Mapping[Key, Mapping[int, int]],
        contents: ContentsTurn,
        until: Micros,
        ctx: Context,
    ) -> None:
        """`sessions`: start and end of those that the keys of this call have."""
        super().__init__(setup, units, panes_of(sessions), contents, until, ctx)
        self._sessions = {key: dict(open_) for key, open_ in sessions.items()}

    def _take_next(self, unit: Key, at: int, limit: int) -> int:
        start, end = time, stop = self._alone(at)
        open_ = self._sessions.setdefault(unit, {})
        met = sorted((s, e) for s, e in open_.items() if s < stop and time < e)
        if met:
            start, end = min(start, met[0][0]), max(end, *(e for _, e in met))
        after = at + 1
        if self._setup.trigger.awaits_end:
            others = [each for each in open_.items() if each not in met]
            after, start, end = self._grown(after, limit, (start, end), others)
        self._join(unit, met, (start, end), at)
        return self._take((*unit, start, end), at, after)

    def _alone(self, at: int) -> tuple[int, int]:
        """The session that a row would be by itself."""
        window = self._setup.window
        assert isinstance(window, Session)
        time = int(self._times[at])
        return time, time + window.gap

    def _grown(
        self, at: int, limit: int, bounds: tuple[int, int], others: Sequence[tuple[int, int]]
    ) -> tuple[int, int, int]:
        """The row after those that join a session before it ends, and its bounds by then."""
        start, end = bounds
        while at < limit and self._turns[at] < end:
            time, stop = self._alone(at)
            # It begins before the end: no row begins after its turn.
            if stop <= start or any(s < stop and time < e for s, e in others):
                break
            start, end = min(start, time), max(end, stop)
            at += 1
        return at, start, end

    def _join(
        self, key: Key, met: Sequence[tuple[int, int]], bounds: tuple[int, int], at: int
    ) -> None:
        """Put a session in place of those that rows join to it."""
        open_, pane = self._sessions[key], (*key, *bounds)
        if met != [bounds]:
            for start, _ in met:
                del open_[start]
            open_[bounds[0]] = bounds[1]
            if met:
                self._merge(pane, [(*key, *each) for each in met], at)

    def _merge(self, pane: Key, parts: Sequence[Key], at: int) -> None:
        time, self._reached = int(self._times[at]), int(self._turns[at])
        self._contents.merge(pane, parts)
        self._live(pane)
        self._begin(pane, Micros(time))
        self._merging = parts
        self._trigger.on_merge(self._context)
        self._merging = ()
        for part in parts:
            self._begin(part, Micros(time))
            self._lives.remove(Micros(self._setup.life(part)), part)
            self._trigger.clear(self._context)
            for state in self._states.values():
                state.clear()

    def _clear(self, pane: Key) -> None:
        super()._clear(pane)
        self._sessions[pane[:-2]].pop(pane[-2], None)

    def finish(self) -> None:
        """Write the sessions back too."""
        super().finish()
        changes: dict[Key, Any] = {key: open_ or DELETED for key, open_ in self._sessions.items()}
        handle(self._setup, self._ctx).put_many(changes)


def handle(setup: Setup, ctx: Context) -> ValueHandle:
    """Start and end of the sessions of each key."""
    return cast("ValueHandle", ctx.state(setup.sessions))


def panes_of(sessions: Mapping[Key, Mapping[int, int]]) -> list[Key]:
    """The panes of some sessions."""
    return [(*key, *bounds) for key, open_ in sessions.items() for bounds in open_.items()]


def sessions_of(
    setup: Setup, units: Units, due: Iterable[Due], ctx: Context
) -> Mapping[Key, Mapping[int, int]]:
    """The sessions of all keys that have rows or timers."""
    keys = {*units.spans, *(pane[:-2] for _, _, pane in due)}
    found = handle(setup, ctx).get_many(keys)
    return {key: found.get(key, {}) for key in sorted(keys)}
