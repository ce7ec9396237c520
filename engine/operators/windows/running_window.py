"""Running window: the merged partials of one window after another, each made from the one before.

    slices of the state ──enter──▶ [ window ] ──leave──▶ forgotten

Shapes   a window gives one row per key, (keys…, partials…), sorted by keys; a small one all rows of
         its slices: to keep it merged takes some queries, and those of many windows share one.
Guarantee  all of this is derived from slices that no longer change: no snapshot holds it, and after
         a restore the first window makes it anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from engine.aggregates import Accumulator, Partials
from engine.aggregates.running import Blocks, Prefix, Running, Subtracting
from engine.aggregates.running_cells import InCells, all_sums, odd
from engine.state.contract import SLICE_END
from engine.state.handles import RunsHandle

Way = Callable[[Sequence[str], Mapping[str, Accumulator]], Running]
"""Makes one way to keep accumulators merged."""

_SMALL_BYTES = 2**18
_FEW_SLICES = 64
"""Up to these sizes a window is merged in less time than moves along."""


class RunningWindow:
    """Moves over the slices of a state."""

    def __init__(self, keys: Sequence[str], partials: Partials, *, slides: bool) -> None:
        """`slides`: whether windows leave some of their slices behind and go on with the others."""
        self._keys = list(keys)
        self._columns = [*keys, *partials.columns]
        self._slides = slides
        self._accumulators = partials.accumulators
        self.takes_late = all_sums(self._accumulators)
        """Whether partials of slices that are inside may come later."""
        self._odd_until: int | None = None
        """The end of the last slice with partials that are in no cell."""
        self._in_cells = True
        self._merges: list[Running] = []
        self._ends: list[int] = []
        """The ends of the slices inside, in order."""
        self._slices: list[pl.DataFrame] = []
        self._sizes: list[int] = []
        """The bytes of each slice."""
        self._until: int | None = None
        """The end of the window."""
        self._window: pl.DataFrame | None = None

    @property
    def until(self) -> int | None:
        """The end of the window; None before there was one."""
        return self._until

    @property
    def merged(self) -> bool:
        """Whether the last window gave one row per key, sorted."""
        return bool(self._merges)

    def moved_to(
        self, start: int, end: int, slices: RunsHandle, late: pl.DataFrame | None = None
    ) -> pl.DataFrame | None:
        """The partials of [start, end); None when it is empty. Windows come in order.

        `late`: more partials of these slices, that count from now on; only where it `takes_late`.
        """
        gone = bisect_right(self._ends, start)
        left = self._slices[:gone]
        del self._ends[:gone], self._slices[:gone], self._sizes[:gone]
        kept = len(self._slices)
        after = start if self._until is None else max(start, self._until)
        self._until = end
        parts = {} if late is None else self._by_slice(late)
        patches = [
            (gone + place, rows, fresh)
            for slice_end, rows in parts.items()
            if slice_end <= after
            for place, fresh in [self._put(slice_end, rows)]
        ]
        entered = self._enter(after, end, slices, parts)
        in_cells = self._odd_until is None or self._odd_until <= start
        if not self._slices:
            self._window = None
        elif self._is_small:
            self._merges = []
            self._window = pl.concat(self._slices)
        elif (
            not kept
            or not self._merges
            or in_cells != self._in_cells
            or (patches and not in_cells)
            or any(merge.worn for merge in self._merges)
        ):
            self._in_cells = in_cells
            self._merges = self._anew()
            self._window = self._moved([], len(self._slices))
        elif left or entered or patches:
            for merge in self._merges:
                if isinstance(merge, InCells):
                    for place, rows, fresh in patches:
                        merge.late(place, rows, fresh=fresh)
            self._window = self._moved(left, entered)
        return self._window

    @property
    def _is_small(self) -> bool:
        return len(self._slices) <= _FEW_SLICES and sum(self._sizes) <= _SMALL_BYTES

    def _enter(
        self, after: int, end: int, slices: RunsHandle, late: Mapping[int, pl.DataFrame]
    ) -> int:
        ends = slices.slice_ends()
        known = ends[bisect_right(ends, after) : bisect_right(ends, end)]
        new = sorted({*known, *(slice_end for slice_end in late if slice_end > after)})
        for slice_end in new:
            runs = slices.read(slice_end - 1, slice_end)
            found = [self._plain(pl.concat(runs))] if runs else []
            if slice_end in late:
                found.append(late[slice_end])
            self._put(slice_end, pl.concat(found))
        return len(new)

    def _plain(self, rows: pl.DataFrame) -> pl.DataFrame:
        # Not `select`, which is a query: that takes longer than all else for few keys.
        return pl.DataFrame([rows.get_column(name) for name in self._columns])

    def _put(self, slice_end: int, rows: pl.DataFrame) -> tuple[int, bool]:
        """Add rows to a slice: its place, and whether it is new."""
        if odd(self._accumulators, rows):
            self._odd_until = max(slice_end, self._odd_until or slice_end)
        place = bisect_left(self._ends, slice_end)
        fresh = place == len(self._ends) or self._ends[place] != slice_end
        if fresh:
            self._ends.insert(place, slice_end)
            self._slices.insert(place, rows)
            self._sizes.insert(place, int(rows.estimated_size()))
        else:
            self._slices[place] = pl.concat([self._slices[place], rows])
            self._sizes[place] += int(rows.estimated_size())
        return place, fresh

    def _by_slice(self, late: pl.DataFrame) -> dict[int, pl.DataFrame]:
        parts = late.partition_by(SLICE_END, as_dict=True)
        return {int(end): self._plain(rows) for (end,), rows in sorted(parts.items())}

    def _anew(self) -> list[Running]:
        grouped: dict[Way, dict[str, Accumulator]] = {}
        for name, accumulator in self._accumulators.items():
            grouped.setdefault(self._way(accumulator), {})[name] = accumulator
        return [way(self._keys, accumulators) for way, accumulators in grouped.items()]

    def _way(self, accumulator: Accumulator) -> Way:
        if self._in_cells and accumulator.cells() is not None:
            return InCells
        if not self._slides:
            return Prefix
        nothing = pl.DataFrame(schema=dict(accumulator.columns))
        return Blocks if accumulator.negated(nothing) is None else Subtracting

    def _moved(self, left: Sequence[pl.DataFrame], entered: int) -> pl.DataFrame:
        found = [merge.move(left, self._slices, entered) for merge in self._merges]
        columns = {column.name: column for frame in found for column in frame.get_columns()}
        return pl.DataFrame([columns[name] for name in self._columns])
