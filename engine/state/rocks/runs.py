"""Runs on disk: partials per slice, in memory until that is full, then as blocks by key group.

    append ──▶ memory ──full──▶ slice ──▶ [run, run, …]  each merged, sorted, cut into blocks
    take_parts ──▶ the ripe slices, a few at a time; one that is too large, by spans of key groups
    freeze ──▶ the frames in memory by reference, and a view of the database

Order    as in `state/runs.py`: partials merge exactly, so where they lay cannot be seen.
Cost     a row is written about log8(spills of its slice) times, and read once when it fires.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import polars as pl
from rocksdict import WriteBatch

from engine.elements import KEY_GROUP, MAX_TIME, MIN_TIME, Micros
from engine.state.contract import SLICE_END, Frozen, FrozenState, Increment, StateDescriptor
from engine.state.handles import Merge, RunsHandle
from engine.state.rocks.addresses import ordered
from engine.state.rocks.blocks import Block, Span, cut, of_span, ranges, read, size_of, within
from engine.state.rocks.memory import Shrinking
from engine.state.rocks.parts import PartedState
from engine.state.rocks.place import Place
from engine.state.rocks.store import View
from engine.state.row_changes import LogChanges
from engine.state.runs import FAN_OUT, MemoryRuns, level_of, merged, run_changes
from engine.state.schema import table_schema
from engine.state.waiting import with_columns

Run = Sequence[Block]


class RocksRuns(RunsHandle, Shrinking):
    """Runs of one subtask."""

    def __init__(self, descriptor: StateDescriptor, place: Place) -> None:
        self.descriptor = descriptor
        self._place = place
        self._store = place.store
        self._part_bytes = place.budget.part_bytes
        self._recent = MemoryRuns(descriptor)
        self._changes = LogChanges(place.layers)
        self._columns = list(table_schema(descriptor))
        self._recent_bytes = 0
        self._spilled: dict[int, list[Run]] = {}
        self._ends: list[int] = []
        self._numbers = count()

    def merge_with(self, merge: Merge) -> None:
        """Say how partials combine."""
        super().merge_with(merge)
        self._recent.merge_with(merge)

    def append(self, run: pl.DataFrame) -> None:
        """Add partials of any keys and slices."""
        self._note(run)
        self._recent.append(run)
        self._recent_bytes += int(run.estimated_size())
        self._place.memory.hold(self, self._recent_bytes)

    def _note(self, run: pl.DataFrame) -> None:
        if self._changes.tracks and run.height:
            rows = with_columns(run, self._columns)  # an operator's may have more, in any order
            last = rows.get_column(SLICE_END).max()
            self._changes.note(rows, int(last))  # type: ignore[arg-type]  # slices end at an Int64

    def shrink(self) -> int:
        """Write what is in memory to disk, unless merging alone has made it small."""
        before, self._recent_bytes = self._recent_bytes, size_of(self._all_recent())
        if self._recent_bytes <= before // 2:
            return self._recent_bytes
        batch = WriteBatch(raw_mode=True)
        ends = self._recent.slice_ends()
        for end in ends:
            run = merged(self._recent.read(end - 1, end), self.merge, self.descriptor, slices=1)
            self._add(end, self._written(end, run.sort(KEY_GROUP), batch))
        self._store.write(batch)
        self._recent.drop_until(MAX_TIME)
        for end in ends:
            self._compact(end)
        self._recent_bytes = 0
        return 0

    def _add(self, end: int, run: Run) -> None:
        runs = self._spilled.get(end)
        if runs is None:
            runs = self._spilled[end] = []
            insort(self._ends, end)
        runs.append(run)

    def _written(self, end: int, run: pl.DataFrame, batch: WriteBatch) -> list[Block]:
        where = self._place.prefix + ordered(end)
        addresses = (where + ordered(number) for number in self._numbers)
        return cut(run, KEY_GROUP, addresses, batch, self._place.budget.block_bytes)

    def _compact(self, end: int) -> None:
        """Merge runs of one size on disk when there are many, a span of key groups at a time."""
        runs = self._spilled[end]
        level = level_of(_rows(runs[-1]))
        same = [run for run in runs if level_of(_rows(run)) <= level]
        if self.merge is None or len(same) < FAN_OUT:
            return
        rest = [run for run in runs if level_of(_rows(run)) > level]
        blocks = list(chain.from_iterable(same))
        run: list[Block] = []
        for span in ranges(blocks, self._place.groups, 0, self._part_bytes):
            rows = within(self._store, blocks, span)
            if rows:
                batch = WriteBatch(raw_mode=True)
                part = merged(rows, self.merge, self.descriptor, slices=1).sort(KEY_GROUP)
                run += self._written(end, part, batch)
                self._store.write(batch)
        self._spilled[end] = [*rest, run]
        self._delete(blocks)

    def take_until(self, time: Micros) -> pl.DataFrame | None:
        """Remove all slices up to a time; their merged rows as a whole."""
        parts = list(self.take_parts(time))
        return pl.concat(parts) if parts else None

    def take_parts(self, time: Micros) -> Iterator[pl.DataFrame]:
        """Remove all slices up to a time; their merged rows in parts that fit into memory."""
        if not self._ends or self._ends[0] > time:
            yield from self._recent.take_parts(time)
            self._changes.drop(time)
            return
        ripe: list[int] = []
        size_bytes = 0
        for end in [end for end in self.slice_ends() if end <= time]:
            more = self._size_of(end)
            if ripe and size_bytes + more > self._part_bytes:
                yield from self._taken(ripe, size_bytes)
                ripe, size_bytes = [], 0
            ripe.append(end)
            size_bytes += more
        yield from self._taken(ripe, size_bytes)

    def _taken(self, ends: Sequence[int], size_bytes: int) -> Iterator[pl.DataFrame]:
        """The merged rows of the first slices."""
        blocks = self._blocks(ends)
        recent = self._recent.read(ends[0] - 1, ends[-1])
        spans = [self._place.groups]
        if size_bytes > self._part_bytes:
            spans = ranges(blocks, self._place.groups, size_of(recent), self._part_bytes)
        for span in spans:
            rows = [*of_span(recent, span), *within(self._store, blocks, span)]
            if rows:
                yield merged(rows, self.merge, self.descriptor, slices=len(ends))
        self.drop_until(ends[-1])

    def slice_ends(self) -> Sequence[int]:
        """The ends of all slices that hold something, in order."""
        if not self._ends:
            return self._recent.slice_ends()
        return sorted({*self._ends, *self._recent.slice_ends()})

    def read(self, after: int, until: int) -> Sequence[pl.DataFrame]:
        """The runs of slices with after < slice_end <= until, which stay; not merged."""
        recent = self._recent.read(after, until)
        ends = self._ends_between(after, until)
        return [*read(self._store, self._blocks(ends)), *recent] if ends else recent

    def spans(self, after: int, until: int) -> Sequence[Span]:
        """Spans of key groups, when the slices do not fit into memory together."""
        blocks = self._blocks(self._ends_between(after, until))
        recent_bytes = size_of(self._recent.read(after, until))
        held_bytes = recent_bytes + sum(block.size_bytes for block in blocks)
        if not blocks or held_bytes <= self._place.budget.columns_bytes:
            return ()
        return ranges(blocks, self._place.groups, recent_bytes, self._part_bytes)

    def read_span(self, after: int, until: int, span: Span) -> Sequence[pl.DataFrame]:
        """What `read` gives, of a span of key groups."""
        blocks = self._blocks(self._ends_between(after, until))
        return [*within(self._store, blocks, span), *of_span(self._recent.read(after, until), span)]

    def drop_until(self, time: int) -> None:
        """Remove all slices with slice_end <= time."""
        self._changes.drop(time)
        self._recent.drop_until(time)
        if not self._recent.slice_ends():
            self._recent_bytes = 0
        ripe = bisect_right(self._ends, time)
        if ripe:
            self._delete(self._blocks(self._ends[:ripe]))
            for end in self._ends[:ripe]:
                del self._spilled[end]
            del self._ends[:ripe]

    def _ends_between(self, after: int, until: int) -> Sequence[int]:
        """The ends of slices on disk with after < slice_end <= until."""
        return self._ends[bisect_right(self._ends, after) : bisect_right(self._ends, until)]

    def _delete(self, blocks: Iterable[Block]) -> None:
        batch = WriteBatch(raw_mode=True)
        for block in blocks:
            batch.delete(block.address)
        self._store.write(batch)

    def _blocks(self, ends: Iterable[int]) -> list[Block]:
        return [block for end in ends for run in self._spilled.get(end, ()) for block in run]

    def _size_of(self, end: int) -> int:
        spilled = sum(block.size_bytes for block in self._blocks([end]))
        return spilled + size_of(self._recent.read(end - 1, end))

    def _all_recent(self) -> Sequence[pl.DataFrame]:
        return self._recent.read(MIN_TIME - 1, MAX_TIME)

    def freeze(self) -> FrozenState:
        """References to what is in memory, and a view of what is on disk."""
        if not self._ends:
            return self._recent.freeze()
        contents = _Contents(self._all_recent(), self._blocks(self._ends), self._store.view())
        return FrozenRocksRuns(
            self.descriptor, contents, self.merge, self._place.groups, self._part_bytes
        )

    def freeze_increment(self, increment: Increment) -> Frozen:
        """The same, or references to the partials that have come."""
        spilled = sum(block.rows for block in self._blocks(self._ends))
        recent = sum(run.height for run in self._all_recent())
        changed = self._changes.freeze(increment, spilled + recent)
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        return run_changes(self.descriptor, increment, changed, self.merge)


@dataclass(frozen=True, slots=True)
class _Contents:
    """All runs of a state at a moment."""

    recent: Sequence[pl.DataFrame]
    blocks: Sequence[Block]
    view: View


class FrozenRocksRuns(PartedState):
    """The runs of one subtask as they were at a barrier."""

    def __init__(
        self,
        descriptor: StateDescriptor,
        contents: _Contents,
        merge: Merge | None,
        groups: Span,
        part_bytes: int,
    ) -> None:
        self.descriptor = descriptor
        self._contents = contents
        self._merge = merge
        self._groups = groups
        self._part_bytes = part_bytes

    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table, a span of key groups at a time."""
        held = self._contents
        recent_bytes = size_of(held.recent)
        for span in ranges(held.blocks, self._groups, recent_bytes, self._part_bytes):
            rows = [*of_span(held.recent, span), *within(held.view, held.blocks, span)]
            if rows:
                part = merged(rows, self._merge, self.descriptor, slices=2)
                yield part.sort(KEY_GROUP, *self.descriptor.keys, SLICE_END)


def _rows(run: Run) -> int:
    return sum(block.rows for block in run)
