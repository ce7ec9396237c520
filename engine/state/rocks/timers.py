"""Timers on disk: the next ones in memory, all later ones in RocksDB, in order of time and key.

    ── memory ──▶|── disk, by (time, key) ──────────────▶
                 border

    add, remove   before the border in memory, else written a thousand at a time
    first, due    memory; when it is used up, the next ones are fetched and the border moves on

Cost     one multi-row read and one WriteBatch per few thousand timers.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator
from itertools import islice

import polars as pl
from rocksdict import WriteBatch

from engine.elements import KEY_GROUP, Micros
from engine.state.changes import LastPuts, PutChanges
from engine.state.contract import TIME, Frozen, FrozenState, Increment, StateDescriptor
from engine.state.handles import DELETED, Key, TimersHandle
from engine.state.rocks.addresses import Addresses, ordered
from engine.state.rocks.changed import Counted, RowCount
from engine.state.rocks.memory import Shrinking
from engine.state.rocks.parts import PartedState
from engine.state.rocks.place import Place
from engine.state.rocks.store import View
from engine.state.timers import MemoryTimers, Timer, timer_changes, timer_table

_TIMER_BYTES = 256
"""Of a timer in memory, roughly: two tuples, and a place in a set and in a heap."""

_PENDING = 1_000
"""So many changes are written at once; no barrier has to wait for more."""

_FETCHED = 2_000
"""So many timers are read at once, at most."""

_FEWEST = 16
"""So many timers stay in memory, however little there is."""


class RocksTimers(TimersHandle, Shrinking):
    """The timers of one subtask."""

    def __init__(self, descriptor: StateDescriptor, place: Place) -> None:
        self.descriptor = descriptor
        self._prefix = place.prefix
        self._addresses = Addresses(b"", descriptor.keys)
        self._store = place.store
        self._memory = place.memory
        self._part_rows = max(_FEWEST, place.budget.part_bytes // _TIMER_BYTES)
        self._next = MemoryTimers(descriptor)
        self._changes: PutChanges[Timer] = PutChanges(place.layers)
        self._count = RowCount()
        self._noted = 0
        self._border: Timer | None = None
        """The first timer that may be on disk; None when none is."""
        self._pending: dict[Timer, bool] = {}
        """Timers behind the border: whether each is to be added, or removed."""

    def add(self, time: Micros, key: Key) -> None:
        """Add a timer."""
        self._count.written += 1
        self._changes.note({(time, key): True})
        if self._is_behind((time, key)):
            self._change((time, key), added=True)
            return
        self._next.add(time, key)
        if len(self._next) >= self._noted + _FEWEST:
            self._noted = len(self._next)
            self._memory.hold(self, self._noted * _TIMER_BYTES)

    def remove(self, time: Micros, key: Key) -> None:
        """Remove a timer, if it is there."""
        self._count.written -= 1
        self._changes.note({(time, key): DELETED})
        if self._is_behind((time, key)):
            self._change((time, key), added=False)
        else:
            self._next.remove(time, key)

    def holds(self, time: Micros, key: Key) -> bool:
        """Whether there is such a timer."""
        timer = time, key
        if not self._is_behind(timer):
            return self._next.holds(time, key)
        if timer in self._pending:
            return self._pending[timer]
        return self._store.get([self._address(timer)]) != [None]

    def first(self) -> Timer | None:
        """The earliest timer."""
        while (found := self._next.first()) is None and self._border is not None:
            self._fetch(self._border)
        return found

    def due(self, time: Micros, limit: int | None = None) -> list[Timer]:
        """All timers up to `time`, or the first `limit`."""
        while self._border is not None and self._border[0] <= time:
            # All that are in memory are due, for they come before the border.
            if limit is not None and len(self._next) >= limit:
                break
            self._fetch(self._border)
        return self._next.due(time, limit)

    def shrink(self) -> int:
        """Give the later half of what is in memory to the disk."""
        later = self._next.keep(max(_FEWEST, len(self._next) // 2))
        if later:
            self._pending.update(dict.fromkeys(later, True))
            self._border = later[0]
            self._flush()
        self._noted = len(self._next)
        return self._noted * _TIMER_BYTES

    def load(self, table: pl.DataFrame) -> None:
        """Add the rows of a canonical table."""
        for *key, time in table.iter_rows():
            self.add(time, tuple(key))

    def _is_behind(self, timer: Timer) -> bool:
        return self._border is not None and timer >= self._border

    def _change(self, timer: Timer, *, added: bool) -> None:
        self._pending[timer] = added
        if len(self._pending) >= _PENDING:
            self._flush()

    def _flush(self) -> None:
        batch = WriteBatch(raw_mode=True)
        for timer, added in self._pending.items():
            if added:
                batch.put(self._address(timer), pickle.dumps(timer, pickle.HIGHEST_PROTOCOL))
            else:
                batch.delete(self._address(timer))
        self._store.write(batch)
        self._pending.clear()

    def _fetch(self, border: Timer) -> None:
        """Take the next timers into memory, and move the border behind them."""
        self._flush()
        # Not from the prefix on: what was taken before would have to be skipped each time.
        stored = self._store.view().items(self._prefix, self._address(border))
        batch = WriteBatch(raw_mode=True)
        for address, value in islice(stored, min(_FETCHED, self._part_rows)):
            self._next.add(*_timer(value))
            batch.delete(address)
        behind = next(stored, None)
        self._border = None if behind is None else _timer(behind[1])
        self._store.write(batch)

    def _address(self, timer: Timer) -> bytes:
        return self._prefix + ordered(timer[0]) + self._addresses.of(timer[1])

    def freeze(self) -> FrozenState:
        """References to what is in memory, and a view of what is on disk."""
        if self._border is None:
            return self._next.freeze()
        self._flush()
        stored = self._store.view()
        since = self._address(self._border)
        held = self._next.copy()
        return FrozenRocksTimers(
            self.descriptor,
            held,
            stored,
            self._prefix,
            since,
            self._part_rows,
            self._count.counting(),
        )

    def freeze_increment(self, increment: Increment) -> Frozen:
        """The same, or references to the timers that have come or gone."""
        rows = len(self._next) if self._border is None else self._count.rows
        changed = self._changes.freeze(increment, rows)
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        return timer_changes(self.descriptor, increment, LastPuts(changed))


class FrozenRocksTimers(PartedState):
    """The timers of one subtask as they were at a barrier."""

    def __init__(
        self,
        descriptor: StateDescriptor,
        held: Collection[Timer],
        stored: View,
        prefix: bytes,
        since: bytes,
        part_rows: int,
        counted: Counted,
    ) -> None:
        self.descriptor = descriptor
        self._held = held
        self._stored = stored
        self._prefix = prefix
        self._since = since
        self._part_rows = part_rows
        self._counted = counted

    def table(self) -> pl.DataFrame:
        """The canonical table, sorted by key group, keys and time."""
        return super().table().sort(KEY_GROUP, *self.descriptor.keys, TIME)

    def tables(self) -> Iterator[pl.DataFrame]:
        """Parts in order of time, each sorted as the table is."""
        return self._counted.through(self._parts())

    def _parts(self) -> Iterator[pl.DataFrame]:
        yield timer_table(self.descriptor, self._held)
        stored = self._stored.items(self._prefix, self._since)
        timers = (_timer(value) for _, value in stored)
        while part := list(islice(timers, self._part_rows)):
            yield timer_table(self.descriptor, part)


def _timer(raw: bytes) -> Timer:
    timer: Timer = pickle.loads(raw)  # noqa: S301  we wrote it
    return timer
