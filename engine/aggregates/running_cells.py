"""Running cells: the partials of a window that moves along, in arrays by key.

    sums         cell += what enters, cell -= what leaves
    extremes     front | back     two stacks of slices: what enters goes to the back; when the front
                                  is empty it is filled from the back, newest slice first, and
                                  remembers for each slice what its keys had without it

Cost     a partial of a slice is merged once and taken out once, some tens of nanoseconds; an
         extreme three times, mostly when the front is filled. Memory: one cell per key; for
         extremes also one partial per key and slice.
Source   Tangwongsan, Hirzel, Schneider, In-Order Sliding-Window Aggregation in Worst-Case Constant
         Time, VLDB Journal 2021 (two stacks).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from engine.aggregates.accumulators import Accumulator
from engine.aggregates.cells import At, Cells, SumCells, Taken, extended
from engine.aggregates.running import Running
from engine.kernels import KeySlots, active


class InCells(Running):
    """Keeps the window in cells. For slices without partials that are `odd`."""

    def __init__(self, keys: Sequence[str], accumulators: Mapping[str, Accumulator]) -> None:
        super().__init__(keys, accumulators)
        cells = _cells(accumulators)
        self._sums = [each for each in cells if isinstance(each, SumCells)]
        self._extremes = [
            _TwoStacks(*three)
            for three in zip(*(_cells(accumulators) for _ in range(3)), strict=True)
            if not isinstance(three[0], SumCells)
        ]
        # Nobody asks for key groups here, and one is as good as many.
        self._slots = KeySlots(keys, max_parallelism=1)
        self._partials = np.zeros(0, dtype=np.int64)
        """How many partials each key has inside: one with none has left the window."""
        self._inside: deque[tuple[pl.DataFrame, At]] = deque()
        self._order: Taken = np.zeros(0, dtype=np.int64)
        """All keys, sorted."""
        self._live = 0

    @property
    def worn(self) -> bool:
        """Whether most of the keys have left."""
        return self._slots.are_worn(self._live)

    def move(
        self, left: Sequence[pl.DataFrame], inside: Sequence[pl.DataFrame], entered: int
    ) -> pl.DataFrame:
        """Take out what leaves, and merge what enters."""
        for _ in left:
            self._leave()
        for frame in inside[len(inside) - entered :]:
            self._enter(frame)
        return self._window()

    def late(self, place: int, partials: pl.DataFrame, *, fresh: bool) -> None:
        """Merge partials with a slice inside; or, when `fresh`, with one that is put there.

        Only where all cells are sums.
        """
        at = self._slots.of(partials)
        self._reserve()
        self._add(partials, at)
        if fresh:
            self._inside.insert(place, (partials, at))
        else:
            known, known_at = self._inside[place]
            self._inside[place] = pl.concat([known, partials]), np.concatenate([known_at, at])

    def _enter(self, frame: pl.DataFrame) -> None:
        at = self._slots.of(frame)
        self._reserve()
        self._inside.append((frame, at))
        self._add(frame, at)
        for stacks in self._extremes:
            stacks.back.merge(at, frame)

    def _add(self, partials: pl.DataFrame, at: At) -> None:
        active().count(at, self._partials)
        for cells in self._sums:
            cells.merge(at, partials)

    def _leave(self) -> None:
        for stacks in self._extremes:
            stacks.leave(self._inside)
        frame, at = self._inside.popleft()
        active().add_whole(at, np.full(len(at), -1, dtype=np.int64), self._partials)
        for cells in self._sums:
            cells.remove(at, frame)

    def _window(self) -> pl.DataFrame:
        if len(self._order) < len(self._slots):
            keys = pl.DataFrame(self._slots.known()[1:])
            self._order = keys.select(pl.arg_sort_by(self.keys)).to_series().to_numpy()
        live = self._order[self._partials[self._order] > 0].astype(np.int64)
        self._live = len(live)
        columns = [column for cells in self._sums for column in cells.read(live)]
        columns += [column for stacks in self._extremes for column in stacks.read(live)]
        return pl.DataFrame([*self._slots.known(live)[1:], *columns])

    def _reserve(self) -> None:
        if len(self._slots) <= len(self._partials):
            return
        room = 1 << len(self._slots).bit_length()
        self._partials = extended(self._partials, room, 0)
        for cells in self._sums:
            cells.reserve(room)
        for stacks in self._extremes:
            stacks.reserve(room)


class _TwoStacks:
    """Cells of which nothing can be taken out."""

    def __init__(self, front: Cells, back: Cells, both: Cells) -> None:
        self._front, self.back, self._both = front, back, both
        self._without: list[pl.DataFrame] = []
        """For each slice of the front, oldest last: what its keys have when it is gone."""

    def reserve(self, keys: int) -> None:
        """Have room for some keys."""
        for cells in (self._front, self.back, self._both):
            cells.reserve(keys)

    def leave(self, inside: Sequence[tuple[pl.DataFrame, At]]) -> None:
        """Take the first of the slices inside out."""
        if not self._without:
            self._fill(inside)
        _, at = inside[0]
        self._front.clear(at.astype(np.int64))
        self._front.merge(at, self._without.pop())

    def _fill(self, inside: Sequence[tuple[pl.DataFrame, At]]) -> None:
        for frame, at in reversed(inside):
            keys = at.astype(np.int64)
            self._without.append(pl.DataFrame(self._front.read(keys)))
            self._front.merge(at, frame)
            self.back.clear(keys)

    def read(self, keys: Taken) -> list[pl.Series]:
        """The partials of the window."""
        back = self.back.read(keys)
        if not self._without:
            return back
        places = np.arange(len(keys), dtype=np.int32)
        for found in (self._front.read(keys), back):
            self._both.merge(places, pl.DataFrame(found))
        return self._both.take(places.astype(np.int64))


def all_sums(accumulators: Mapping[str, Accumulator]) -> bool:
    """Whether all partials are kept in cells of sums."""
    kept = [each.cells() for each in accumulators.values()]
    return all(
        cells is not None and all(isinstance(each, SumCells) for each in cells) for cells in kept
    )


def odd(accumulators: Mapping[str, Accumulator], frame: pl.DataFrame) -> bool:
    """Whether some partials of a slice fit in no cell."""
    return any(cells.odd(frame) is not None for cells in _cells(accumulators))


def _cells(accumulators: Mapping[str, Accumulator]) -> list[Cells]:
    return [cells for each in accumulators.values() for cells in each.cells() or ()]
