"""Panes: partials per key and slice, gathered over many batches before they go on.

    rows --key--> slot   --event time--> block of the slice   cell = block * stride + slot
    cells --take_until(watermark), take_all--> partial frames, as of a single batch

Shapes   `take_*` give (key_group, keys…, slice_end, <partials>, partial.rows), by slice.
Order    what is gathered belongs to slices that end after the watermark, so whoever takes a slice
         when the watermark reaches its end, and everything before a barrier and before idleness,
         gives what it would have given row by row. Sessions look across slices, and take each cell
         when the watermark passes its first row.
Cost     memory is bounded: keys are forgotten when there are many, and what does not fit goes the
         way of single batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.aggregates import ROWS
from engine.aggregates.cells import MOST_ROWS, At, Cells, Taken, extended
from engine.elements import EVENT_TIME, MAX_TIME
from engine.kernels import KeySlots, active
from engine.kernels.plain import FREE, LATE
from engine.state.contract import SLICE_END
from engine.windows import Times

_FIRST_STRIDE = 1_024
_FIRST_BLOCKS = 4
_MOST_BLOCKS = 64
"""A new slice looks through all of them."""
_MOST_CELLS = 2**20
"""About 50 MB for a count and a sum."""
_MOST_KEYS = 2**18
"""More are forgotten, and begin anew: most of them may never come again."""


Emit = Callable[[pl.DataFrame], None]

Ripe = Callable[[Taken], npt.NDArray[np.bool_]]
"""Tells which of some cells are to go on."""


class Panes:
    """What one subtask has gathered."""

    def __init__(
        self,
        keys: Sequence[str],
        grid: tuple[int, int, int],
        cells: Mapping[str, Sequence[Cells]],
        max_parallelism: int,
        emit: Emit,
    ) -> None:
        """Gather per key, and per slice of a grid as windows say it."""
        self._grid = grid
        self._cells = cells
        self._emit = emit
        self._slots = KeySlots(keys, max_parallelism)
        self._rows = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._stride = _FIRST_STRIDE
        self._ends = np.zeros(0, dtype=np.int64)
        self._extend(_FIRST_BLOCKS)

    def outside(self, values: Mapping[str, pl.Series]) -> npt.NDArray[np.bool_] | None:
        """Which rows have a value that cells cannot hold; None for no row."""
        odd = [each.outside(values[name]) for name, cells in self._cells.items() for each in cells]
        found = [rows for rows in odd if rows is not None]
        return np.logical_or.reduce(found) if found else None

    def add(self, frame: pl.DataFrame, values: Mapping[str, pl.Series], watermark: int) -> bool:
        """Gather rows that are not `outside`. Raises FunctionError.

        False, and nothing is gathered, when a slice has ended by the watermark, or the rows lie in
        more slices than fit.
        """
        if frame.height > MOST_ROWS:
            return False
        self._make_room(frame.height)
        slots = self._slots.of(frame)
        if len(self._slots) > self._stride:
            self.flush()
            self._stride = 1 << len(self._slots).bit_length()
            self._extend(_FIRST_BLOCKS)
        at = self._place(frame.get_column(EVENT_TIME).to_numpy(), slots, watermark)
        if at is None:
            return False
        active().count(at, self._counts)
        for name, cells in self._cells.items():
            for each in cells:
                each.add(at, values[name])
        self._rows += frame.height
        return True

    def flush(self) -> None:
        """Send everything on."""
        self.flush_until(MAX_TIME)

    def flush_until(self, time: int, ripe: Ripe | None = None) -> None:
        """Send the slices on that end by a time; of their cells those that are ripe, or all."""
        blocks = [
            block for block in np.argsort(self._ends).tolist() if FREE < self._ends[block] <= time
        ]
        if blocks:
            self._send(blocks, ripe)

    def _make_room(self, rows: int) -> None:
        if self._rows + rows > MOST_ROWS:
            self.flush()
        if len(self._slots) > _MOST_KEYS:
            self.flush()
            self._slots.clear()

    def _place(self, times: Times, slots: At, watermark: int) -> At | None:
        """The cell of each row; None where `add` gives up."""
        at = np.empty_like(slots)
        done = 0
        while True:
            placed = active().place(
                times[done:],
                slots[done:],
                at[done:],
                self._grid,
                self._ends,
                self._stride,
                watermark,
            )
            if placed == LATE:
                return None
            done += placed
            if done == len(at):
                return at
            blocks = 2 * len(self._ends)
            if blocks > _MOST_BLOCKS or blocks * self._stride > max(
                _MOST_CELLS, _FIRST_BLOCKS * self._stride
            ):
                self.flush()
                return None
            self._extend(blocks)

    def _extend(self, blocks: int) -> None:
        """Have at least so many blocks."""
        free = np.full(max(blocks, len(self._ends)), FREE, dtype=np.int64)
        free[: len(self._ends)] = self._ends
        self._ends = free
        size = len(free) * self._stride
        self._counts = extended(self._counts, size, 0)
        for cells in self._cells.values():
            for each in cells:
                each.reserve(size)

    def _send(self, blocks: Sequence[int], ripe: Ripe | None) -> None:
        # There may be new slots that do not fit into the blocks yet.
        used = min(len(self._slots), self._stride)
        lows = [block * self._stride for block in blocks]
        found = [np.flatnonzero(self._counts[low : low + used]) for low in lows]
        ends = self._ends[blocks]
        if ripe is None:
            self._ends[blocks] = FREE
        else:
            held, found = (
                found,
                [rows[ripe(rows + low)] for rows, low in zip(found, lows, strict=True)],
            )
            left = zip(blocks, held, found, strict=True)
            self._ends[[block for block, all_, sent in left if len(all_) == len(sent)]] = FREE
        slots = np.concatenate(found)
        if not len(slots):
            return
        sizes = [len(rows) for rows in found]
        cells = slots + np.repeat(lows, sizes)
        counts = self._counts[cells]
        self._counts[cells] = 0
        self._rows -= int(counts.sum())
        columns = [
            # The usual case: one slice, in which every key has rows.
            *self._slots.known(None if len(slots) == used and len(blocks) == 1 else slots),
            pl.Series(SLICE_END, np.repeat(ends, sizes)),
            *(
                part
                for each in self._cells.values()
                for part_of in each
                for part in part_of.take(cells)
            ),
            pl.Series(ROWS, counts),
        ]
        self._emit(pl.DataFrame(columns))
