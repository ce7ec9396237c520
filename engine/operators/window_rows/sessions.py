"""Sessions: windows of a key that become one when a row lies less than a gap from each.

    open sessions   [0 ········· 12)         [20 ······ 31)
    a row                       [11 ········ 21)               gap 10: it meets both
    becomes         [0 ····························· 31)

Order    rows of a key are played one at a time: each may move the bounds of its window, and its
         window is another pane then. A row joins sessions that are not over at its turn.
Source   Akidau et al., The Dataflow Model, VLDB 2015, section 2.2.1; Flink's merging windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from engine.elements import Micros
from engine.operators.contract import Context
from engine.operators.window_rows.assign import Units
from engine.operators.window_rows.contents import ContentsTurn
from engine.operators.window_rows.turn import Due, Setup, WindowTurn
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
        panes = [(*key, *bounds) for key, open_ in sessions.items() for bounds in open_.items()]
        super().__init__(setup, units, panes, contents, until, ctx)
        self._sessions = {key: dict(open_) for key, open_ in sessions.items()}

    def _take_next(self, unit: Key, at: int, limit: int) -> int:
        return self._take(
            self._joined(unit, int(self._times[at]), int(self._turns[at])), at, at + 1
        )

    def _joined(self, key: Key, time: int, turn: int) -> Key:
        """The session that a row belongs to, made of those that it joins."""
        window = self._setup.window
        assert isinstance(window, Session)
        open_ = self._sessions.setdefault(key, {})
        stop = time + window.gap
        met = sorted((start, end) for start, end in open_.items() if start < stop and time < end)
        bounds = min([time, *(s for s, _ in met)]), max([stop, *(e for _, e in met)])
        pane = (*key, *bounds)
        if met != [bounds]:
            for start, _ in met:
                del open_[start]
            open_[bounds[0]] = bounds[1]
            if met:
                self._merge(pane, [(*key, *each) for each in met], time, turn)
        return pane

    def _merge(self, pane: Key, parts: Sequence[Key], time: int, turn: int) -> None:
        self._reached = turn
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


def sessions_of(
    setup: Setup, units: Units, due: Iterable[Due], ctx: Context
) -> Mapping[Key, Mapping[int, int]]:
    """The sessions of all keys that have rows or timers."""
    keys = {*units.spans, *(pane[:-2] for _, _, pane in due)}
    found = handle(setup, ctx).get_many(keys)
    return {key: found.get(key, {}) for key in sorted(keys)}
