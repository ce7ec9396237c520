"""Runs: partials per slice as immutable frames, compacted like the levels of an LSM tree.

    append ──▶ slice_end ──▶ [run, run, run, …]      runs of similar height are merged when many
    take_until ──▶ the ripe slices, merged
    freeze ──▶ the same frames, by reference

Order    partials merge exactly and in any order, so neither batching nor the time of a compaction
         can be seen in a result.
Cost     a row is merged about log8(rows per slice) times; freeze copies one reference per run.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from engine.elements import KEY_GROUP, Micros
from engine.state.changes import LayerPolicy
from engine.state.contract import (
    SLICE_END,
    Frozen,
    FrozenChanges,
    FrozenState,
    Increment,
    StateDescriptor,
)
from engine.state.handles import Merge, RunsHandle
from engine.state.row_changes import LogChanges, Logged
from engine.state.schema import table_schema

FAN_OUT = 8
"""So many runs of one level become one run of the next: few merges, and few runs at fire."""

_LARGE = 1_024
"""A slice of so many rows costs more than another query."""


class MemoryRuns(RunsHandle):
    """Runs in memory, by slice."""

    def __init__(self, descriptor: StateDescriptor, policy: LayerPolicy | None = None) -> None:
        self._descriptor = descriptor
        self._changes = LogChanges(policy or LayerPolicy())
        self._columns = list(table_schema(descriptor))
        self._slices: dict[int, list[pl.DataFrame]] = {}
        self._ends: list[int] = []

    def append(self, run: pl.DataFrame) -> None:
        """Cut a run at the ends of its slices, and add the pieces."""
        if run.is_empty():
            return
        run = pl.DataFrame([run.get_column(column) for column in self._columns])
        ends = run.get_column(SLICE_END).to_numpy()
        if (ends[1:] < ends[:-1]).any():
            run = run.sort(SLICE_END)
            ends = run.get_column(SLICE_END).to_numpy()
        starts = [0, *(np.flatnonzero(np.diff(ends)) + 1).tolist(), run.height]
        for start, stop in pairwise(starts):
            self._append_to(int(ends[start]), run.slice(start, stop - start))

    def _append_to(self, end: int, run: pl.DataFrame) -> None:
        runs = self._slices.get(end)
        if runs is None:
            runs = self._slices[end] = []
            insort(self._ends, end)
        runs.append(run)
        self._changes.note(run, end)
        self._compact(runs)

    def _compact(self, runs: list[pl.DataFrame]) -> None:
        while self.merge is not None:
            level = level_of(runs[-1].height)
            same = [run for run in runs if level_of(run.height) <= level]
            if len(same) < FAN_OUT:
                return
            rest = [run for run in runs if level_of(run.height) > level]
            merged_run = merged(same, self.merge, self._descriptor, slices=1)
            runs[:] = [*rest, merged_run]
            # Few keys: the merged run stays on its level, where merging again would not end.
            if level_of(merged_run.height) <= level:
                return

    def take_until(self, time: Micros) -> pl.DataFrame | None:
        """Remove the ripe slices, and merge their runs."""
        ripe = bisect_right(self._ends, time)
        if ripe == 0:
            return None
        self._changes.drop(time)
        ends, self._ends = self._ends[:ripe], self._ends[ripe:]
        runs = [run for end in ends for run in self._slices.pop(end)]
        return merged(runs, self.merge, self._descriptor, slices=len(ends))

    def take_parts(self, time: Micros) -> Iterator[pl.DataFrame]:
        """Large slices by themselves: that costs less than to merge and to sort by slice too."""
        small: list[int] = []
        for end in self._ends[: bisect_right(self._ends, time)]:
            if sum(run.height for run in self._slices[end]) < _LARGE:
                small.append(end)
                continue
            parts = [
                self.take_until(Micros(small[-1])) if small else None,
                self.take_until(Micros(end)),
            ]
            small.clear()
            yield from (part for part in parts if part is not None)
        yield from super().take_parts(time)

    def slice_ends(self) -> Sequence[int]:
        """The ends of all slices, in order."""
        return tuple(self._ends)

    def read(self, after: int, until: int) -> Sequence[pl.DataFrame]:
        """The runs of some slices, by reference."""
        lo, hi = bisect_right(self._ends, after), bisect_right(self._ends, until)
        return [run for end in self._ends[lo:hi] for run in self._slices[end]]

    def drop_until(self, time: int) -> None:
        """Forget the slices up to a time."""
        ripe = bisect_right(self._ends, time)
        if ripe:
            self._changes.drop(time)
        for end in self._ends[:ripe]:
            del self._slices[end]
        del self._ends[:ripe]

    def freeze(self) -> FrozenState:
        """References to all runs."""
        return FrozenRuns(self._descriptor, self._all(), self.merge)

    def freeze_increment(self, increment: Increment) -> Frozen:
        """References to the runs that have come, as they came: not as they were merged with old
        ones.
        """
        changed = self._changes.freeze(increment, sum(run.height for run in self._all()))
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        return run_changes(self._descriptor, increment, changed, self.merge)

    def _all(self) -> list[pl.DataFrame]:
        return [run for end in self._ends for run in self._slices[end]]


class FrozenRuns(FrozenState):
    """The runs of one subtask as they were at a barrier."""

    def __init__(
        self, descriptor: StateDescriptor, runs: Sequence[pl.DataFrame], merge: Merge | None
    ) -> None:
        self.descriptor = descriptor
        self._runs = runs
        self._merge = merge

    def table(self) -> pl.DataFrame:
        """The canonical table: one row per key and slice, sorted."""
        schema = table_schema(self.descriptor)
        if not self._runs:
            return pl.DataFrame(schema=schema)
        table = merged(self._runs, self._merge, self.descriptor, slices=2)
        return table.sort(KEY_GROUP, *self.descriptor.keys, SLICE_END, maintain_order=True)


def run_changes(
    descriptor: StateDescriptor, increment: Increment, changed: Logged, merge: Merge | None
) -> FrozenChanges:
    """Runs that have come, and the slices that have gone, as a checkpoint writes them."""
    pieces = changed.pieces

    def rows() -> Iterator[pl.DataFrame]:
        runs = [piece.left(SLICE_END) for piece in pieces]
        return FrozenRuns(descriptor, runs, merge).tables()

    return FrozenChanges(
        descriptor,
        since=increment.base,
        by=(),
        rows=rows,
        dropped=changed.until,
    )


def merged(
    runs: Sequence[pl.DataFrame], merge: Merge | None, descriptor: StateDescriptor, slices: int
) -> pl.DataFrame:
    """All rows of some runs, one per key and slice. `slices`: how many slices they are of."""
    if merge is None:
        return pl.concat(runs)
    if len(runs) == 1 and slices == 1 and _is_merged(runs[0], descriptor):
        return runs[0]
    # Grouping by one column is several times as fast as by two.
    within = [SLICE_END] if slices > 1 else []
    constant = [KEY_GROUP] if slices > 1 else [KEY_GROUP, SLICE_END]
    rows = merge(pl.concat(runs), [*descriptor.keys, *within], constant)
    return pl.DataFrame([rows.get_column(column) for column in table_schema(descriptor)])


def level_of(rows: int) -> int:
    """Which size class a run of so many rows belongs to."""
    return (rows.bit_length() - 1) // 3


def _is_merged(run: pl.DataFrame, descriptor: StateDescriptor) -> bool:
    """Whether no key has two rows: the usual case where one subtask gathers over many batches."""
    if len(descriptor.keys) == 1:
        (key,) = descriptor.keys
        return run.get_column(key).n_unique() == run.height
    return run.select(*descriptor.keys).n_unique() == run.height
