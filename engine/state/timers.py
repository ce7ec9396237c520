"""Timers in memory: a set of (time, key), and a heap over it.

Cost     adding and firing a timer takes log(timers); a removed one waits in the heap.
         Some 200 bytes each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush

import polars as pl

from engine.elements import KEY_GROUP, Micros
from engine.state.changes import LastPuts, LayerPolicy, PutChanges
from engine.state.contract import (
    TIME,
    Frozen,
    FrozenChanges,
    FrozenState,
    Increment,
    StateDescriptor,
)
from engine.state.handles import DELETED, Key, TimersHandle
from engine.state.schema import table_schema

Timer = tuple[Micros, Key]


class MemoryTimers(TimersHandle):
    """The timers of one subtask."""

    def __init__(self, descriptor: StateDescriptor, policy: LayerPolicy | None = None) -> None:
        self._descriptor = descriptor
        self._changes: PutChanges[Timer] = PutChanges(policy or LayerPolicy())
        self._timers: set[Timer] = set()
        self._heap: list[Timer] = []

    def add(self, time: Micros, key: Key) -> None:
        """Add a timer."""
        timer = time, key
        if timer not in self._timers:
            self._timers.add(timer)
            heappush(self._heap, timer)
            if self._changes.tracks:
                self._changes.note({timer: True})

    def remove(self, time: Micros, key: Key) -> None:
        """Remove a timer, if it is there."""
        timer = time, key
        if timer in self._timers:
            self._timers.remove(timer)
            if self._changes.tracks:
                self._changes.note({timer: DELETED})
        # Timers that are always moved on before they fire must not fill the heap.
        if len(self._heap) > 64 and len(self._heap) > 4 * len(self._timers):
            self._heap = list(self._timers)
            heapify(self._heap)

    def holds(self, time: Micros, key: Key) -> bool:
        """Whether there is such a timer."""
        return (time, key) in self._timers

    def first(self) -> Timer | None:
        """The earliest timer."""
        while self._heap and self._heap[0] not in self._timers:
            heappop(self._heap)
        return self._heap[0] if self._heap else None

    def due(self, time: Micros, limit: int | None = None) -> list[Timer]:
        """All timers up to `time`, or the first `limit`."""
        found: list[Timer] = []
        while (timer := self.first()) is not None and timer[0] <= time and len(found) != limit:
            heappop(self._heap)
            # A timer that was removed and added again is twice in the heap.
            if not found or found[-1] != timer:
                found.append(timer)
        for timer in found:
            heappush(self._heap, timer)
        return found

    def __len__(self) -> int:
        return len(self._timers)

    def keep(self, count: int) -> list[Timer]:
        """Remove all but the earliest `count`, and give them back in order."""
        ordered = sorted(self._timers)
        self._heap = ordered[:count]
        self._timers = set(self._heap)
        return ordered[count:]

    def load(self, table: pl.DataFrame) -> None:
        """Add the rows of a canonical table."""
        for *key, time in table.iter_rows():
            self._timers.add((time, tuple(key)))
        self._heap = list(self._timers)
        heapify(self._heap)

    def freeze(self) -> FrozenState:
        """References to all timers."""
        return FrozenTimers(self._descriptor, self._timers.copy())

    def freeze_increment(self, increment: Increment) -> Frozen:
        """References to the timers that have come or gone."""
        descriptor, changed = self._descriptor, self._changes.freeze(increment, len(self._timers))
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        return timer_changes(descriptor, increment, LastPuts(changed))

    def copy(self) -> Collection[Timer]:
        """All timers as they are now, in no order."""
        return self._timers.copy()


class FrozenTimers(FrozenState):
    """The timers of one subtask as they were at a barrier."""

    def __init__(self, descriptor: StateDescriptor, timers: Collection[Timer]) -> None:
        self.descriptor = descriptor
        self._timers = timers

    def table(self) -> pl.DataFrame:
        """The canonical table, sorted by key group, keys and time."""
        return timer_table(self.descriptor, self._timers)


def timer_changes(
    descriptor: StateDescriptor, increment: Increment, puts: LastPuts[Timer]
) -> FrozenChanges:
    """Timers that have come, or were deleted, as a checkpoint writes them."""
    return FrozenChanges(
        descriptor,
        since=increment.base,
        by=(KEY_GROUP, *descriptor.keys, TIME),
        rows=lambda: [timer_table(descriptor, puts.items())],
        removed=lambda: [timer_table(descriptor, puts.deleted())],
    )


def timer_table(descriptor: StateDescriptor, timers: Iterable[Timer]) -> pl.DataFrame:
    """Timers as a table, sorted by key group, keys and time."""
    rows = [(*key, time) for time, key in timers]
    table = pl.DataFrame(rows, schema=table_schema(descriptor), orient="row")
    return table.sort(KEY_GROUP, *descriptor.keys, TIME)
