"""An agenda on disk: times are rounded up to a grain, so that a key is noted a few times only.

Cost     a key that is written all the time has one entry per grain of what its values live; nothing
         is kept in memory but the next entries.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from engine.elements import MAX_TIME, Micros
from engine.state.contract import TIME, StateDescriptor, StateKind
from engine.state.handles import Agenda, Key
from engine.state.rocks.place import Place
from engine.state.rocks.timers import RocksTimers


class RocksAgenda(Agenda):
    """Times and keys, as timers that no snapshot has."""

    def __init__(self, keys: Mapping[str, pl.DataType], place: Place, grain: int) -> None:
        descriptor = StateDescriptor("agenda", StateKind.TIMERS, keys, {TIME: pl.Int64()})
        self._timers = RocksTimers(descriptor, place)
        self._grain = max(1, grain)

    def note(self, key: Key, time: Micros) -> None:
        """Remember a key."""
        rounded = -(-time // self._grain) * self._grain
        self._timers.add(Micros(min(rounded, MAX_TIME - 1)), key)

    def first(self) -> Micros:
        """The first time."""
        first = self._timers.first()
        return MAX_TIME if first is None else first[0]

    def take(self, time: Micros, limit: int) -> list[Key]:
        """Take the first keys; one that was noted several times comes several times."""
        ripe = self._timers.due(time, limit)
        for timer in ripe:
            self._timers.remove(*timer)
        return [key for _, key in ripe]
