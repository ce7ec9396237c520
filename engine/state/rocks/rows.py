"""Waiting rows on disk: in memory until that is full, then as blocks in order of event time.

    append ──▶ memory ──full──▶ sorted by event time, cut into blocks
    take_before(time) ──▶ memory and the blocks that begin before it; what is left stays in memory

Order    every row has the number of its arrival, which decides between rows of one time and key.
Cost     a row is written once, and read once when it leaves or one of its block does.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from itertools import count
from operator import attrgetter

import polars as pl
from rocksdict import WriteBatch

from engine.elements import EVENT_TIME, KEY_GROUP, MAX_TIME, MIN_TIME, Micros
from engine.state.contract import Frozen, FrozenState, Increment, StateDescriptor
from engine.state.handles import RowsHandle
from engine.state.rocks.addresses import ordered
from engine.state.rocks.blocks import Block, cut, read, size_of
from engine.state.rocks.memory import Shrinking
from engine.state.rocks.parts import PartedState
from engine.state.rocks.place import Place
from engine.state.rocks.store import View
from engine.state.row_changes import LogChanges
from engine.state.schema import table_schema
from engine.state.waiting import row_changes

_ARRIVAL = "arrival"


class RocksRows(RowsHandle, Shrinking):
    """The waiting rows of one subtask."""

    def __init__(self, descriptor: StateDescriptor, place: Place) -> None:
        self.descriptor = descriptor
        self._columns = list(table_schema(descriptor))
        self._place = place
        self._store = place.store
        self._part_bytes = place.budget.part_bytes
        self._changes = LogChanges(place.layers)
        self._recent: list[pl.DataFrame] = []
        self._recent_bytes = 0
        self._blocks: list[Block] = []
        self._arrived = 0
        self._numbers = count()

    def append(self, rows: pl.DataFrame) -> None:
        """Add rows."""
        if rows.is_empty():
            return
        self._note(rows)
        arrival = pl.int_range(self._arrived, self._arrived + rows.height, dtype=pl.Int64)
        self._arrived += rows.height
        self._recent.append(rows.select(*self._columns, arrival.alias(_ARRIVAL)))
        self._recent_bytes += size_of(self._recent[-1:])
        self._place.memory.hold(self, self._recent_bytes)

    def _note(self, rows: pl.DataFrame) -> None:
        if self._changes.tracks:
            columns = rows.select(self._columns)
            self._changes.note(columns, int(columns.get_column(EVENT_TIME).max()))  # type: ignore[arg-type]

    def shrink(self) -> int:
        """Write what is in memory to disk."""
        rows = pl.concat(self._recent).sort(EVENT_TIME, _ARRIVAL)
        batch = WriteBatch(raw_mode=True)
        addresses = (self._place.prefix + ordered(number) for number in self._numbers)
        for block in cut(rows, EVENT_TIME, addresses, batch, self._place.budget.block_bytes):
            insort(self._blocks, block, key=attrgetter("lo"))
        self._store.write(batch)
        self._recent, self._recent_bytes = [], 0
        return 0

    def take_before(self, time: Micros) -> pl.DataFrame | None:
        """Remove the rows with event_time < time, sorted."""
        frames = self._recent
        touched = [block for block in self._blocks if block.lo < time]
        if touched:
            frames = [*read(self._store, touched), *frames]
        if not any(_earliest(frame) < time for frame in frames):
            return None
        self._changes.drop(time - 1)
        rows = pl.concat(frames)
        ripe = rows.get_column(EVENT_TIME) < time
        left = rows.filter(~ripe)
        self._recent = [left] if left.height else []
        self._blocks = self._blocks[len(touched) :]
        batch = WriteBatch(raw_mode=True)
        for block in touched:
            batch.delete(block.address)
        self._store.write(batch)
        self._recent_bytes = size_of(self._recent)
        self._place.memory.hold(self, self._recent_bytes)
        keys = [KEY_GROUP, *self.descriptor.keys]
        return rows.filter(ripe).sort(EVENT_TIME, *keys, _ARRIVAL).drop(_ARRIVAL)

    def reach(self, time: Micros) -> Micros:
        """The last time up to `time` before which all rows fit into memory."""
        size_bytes = 0
        for block in self._blocks:
            if size_bytes > self._part_bytes and self._blocks[0].lo < block.lo < time:
                return Micros(block.lo)
            size_bytes += block.size_bytes
        return time

    def freeze(self) -> FrozenState:
        """References to what is in memory, and a view of what is on disk."""
        view = self._store.view() if self._blocks else None
        recent, blocks = tuple(self._recent), tuple(self._blocks)
        return FrozenRocksRows(self.descriptor, recent, blocks, view, self._part_bytes)

    def freeze_increment(self, increment: Increment) -> Frozen:
        """The same, or references to the rows that have come."""
        spilled = sum(block.rows for block in self._blocks)
        recent = sum(rows.height for rows in self._recent)
        changed = self._changes.freeze(increment, spilled + recent)
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        return row_changes(self.descriptor, increment, changed)


class FrozenRocksRows(PartedState):
    """The waiting rows of one subtask as they were at a barrier."""

    def __init__(
        self,
        descriptor: StateDescriptor,
        recent: Sequence[pl.DataFrame],
        blocks: Sequence[Block],
        view: View | None,
        part_bytes: int,
    ) -> None:
        self.descriptor = descriptor
        self._recent = recent
        self._blocks = blocks
        self._view = view
        self._part_bytes = part_bytes
        self._order = [KEY_GROUP, *descriptor.keys, EVENT_TIME]

    def table(self) -> pl.DataFrame:
        """The canonical table, sorted by key group, keys, time, and then arrival."""
        return super().table().sort(self._order, maintain_order=True)

    def tables(self) -> Iterator[pl.DataFrame]:
        """Parts in order of time; each sorted as the table is."""
        since: int = MIN_TIME
        for until in self._bounds():
            time = pl.col(EVENT_TIME)
            inside = (time >= since) & (time < until)
            touched = [block for block in self._blocks if block.overlaps((since, until))]
            frames = [] if self._view is None else read(self._view, touched)
            parts = [frame.filter(inside) for frame in (*frames, *self._recent)]
            if parts:
                yield pl.concat(parts).sort(*self._order, _ARRIVAL).drop(_ARRIVAL)
            since = until

    def _bounds(self) -> Iterator[int]:
        """Where parts end, so that each fits into memory."""
        size_bytes, last = 0, self._blocks[0].lo if self._blocks else MIN_TIME
        for block in self._blocks:
            if size_bytes > self._part_bytes and block.lo != last:
                yield block.lo
                size_bytes, last = 0, block.lo
            size_bytes += block.size_bytes
        yield MAX_TIME


def _earliest(rows: pl.DataFrame) -> int:
    return int(rows.get_column(EVENT_TIME).min())  # type: ignore[arg-type]
