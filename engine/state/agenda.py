"""Agendas: when to look again at keys whose values end one day. Not part of any snapshot.

    note(key, time) ──▶ agenda ──take(time)──▶ keys whose time has come

Whoever restores a state notes its keys anew: what an agenda says follows from the values.
"""

from __future__ import annotations

from heapq import heappop, heappush

from engine.elements import MAX_TIME, Micros
from engine.state.handles import Agenda, Key


class MemoryAgenda(Agenda):
    """One entry per key, at the first time that was noted."""

    def __init__(self) -> None:
        self._heap: list[tuple[Micros, Key]] = []
        self._noted: set[Key] = set()

    def note(self, key: Key, time: Micros) -> None:
        """Remember a key, unless it is looked at anyway."""
        if key not in self._noted:
            self._noted.add(key)
            heappush(self._heap, (time, key))

    def first(self) -> Micros:
        """The first time."""
        return self._heap[0][0] if self._heap else MAX_TIME

    def take(self, time: Micros, limit: int) -> list[Key]:
        """Take the first keys."""
        ripe: list[Key] = []
        while self._heap and self._heap[0][0] <= time and len(ripe) < limit:
            ripe.append(heappop(self._heap)[1])
        self._noted.difference_update(ripe)
        return ripe
