"""Running merges: the partials of a window that moves along, kept merged.

    slices     a  b  c  d  e  f  g   ──▶ event time
    window       [b  c  d  e] ──▶ [c  d  e  f]

    Prefix         window + f              windows that keep their start while they grow
    Subtracting    window + f - b          variances, quantiles, sums that are not finite
    Blocks         b + (c d) + (e f) …     all others: slices merged in twos, fours, eights, …

What is kept in cells goes the faster way of `running_cells`.

Order    partials merge exactly and in any order, so the way they merged cannot be seen.
Cost     per window, in partials of one slice: Subtracting about three, Blocks about two and the
         binary logarithm of the window's slices. Memory: Subtracting one partial per key, Blocks
         about as much as the slices.
Source   Arasu, Widom, Resource Sharing in Continuous Sliding-Window Aggregates, VLDB 2004 (base
         intervals); Tangwongsan et al., General Incremental Sliding-Window Aggregation, VLDB 2015.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates.accumulators import Accumulator, Count
from engine.aggregates.partials import Partials

_SLICES = "window.slices"
"""How many partials of slices a merged one stands for: a key with none has left the window."""


class Running(ABC):
    """The merged partials of the slices inside a window, oldest first."""

    def __init__(self, keys: Sequence[str], accumulators: Mapping[str, Accumulator]) -> None:
        self.keys = list(keys)
        self.partials = Partials(accumulators, {})

    @abstractmethod
    def move(
        self, left: Sequence[pl.DataFrame], inside: Sequence[pl.DataFrame], entered: int
    ) -> pl.DataFrame:
        """Take the oldest slices out, and the last `entered` of those inside in.

        Gives one partial per key of the window, sorted by keys.
        """

    @property
    def worn(self) -> bool:
        """Whether to begin anew would be cheaper than to go on."""
        return False

    def _merged(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        columns = [*self.keys, *self.partials.columns]
        rows = pl.concat([frame.select(columns) for frame in frames])
        return self.partials.merge(rows, self.keys, [])


class Prefix(Running):
    """Adds what enters. Nothing leaves."""

    def __init__(self, keys: Sequence[str], accumulators: Mapping[str, Accumulator]) -> None:
        super().__init__(keys, accumulators)
        self._window: pl.DataFrame | None = None

    def move(
        self, left: Sequence[pl.DataFrame], inside: Sequence[pl.DataFrame], entered: int
    ) -> pl.DataFrame:
        """Merge the window with what enters."""
        known = [] if self._window is None else [self._window]
        window = self._window = self._merged([*known, *inside[len(inside) - entered :]])
        return window.sort(self.keys)


class Subtracting(Running):
    """Adds what enters, and takes out what leaves."""

    def __init__(self, keys: Sequence[str], accumulators: Mapping[str, Accumulator]) -> None:
        super().__init__(keys, {**accumulators, _SLICES: Count(_SLICES)})
        self._window: pl.DataFrame | None = None

    def move(
        self, left: Sequence[pl.DataFrame], inside: Sequence[pl.DataFrame], entered: int
    ) -> pl.DataFrame:
        """Merge the window with what enters, and with the opposite of what leaves."""
        if self._window is None:
            self._window = self._merged(list(map(_counted, inside)))
        else:
            self._window = self._moved(self._window, left, inside, entered)
        return self._window.sort(self.keys)

    def _moved(
        self,
        window: pl.DataFrame,
        left: Sequence[pl.DataFrame],
        inside: Sequence[pl.DataFrame],
        entered: int,
    ) -> pl.DataFrame:
        taken = [self.partials.negated(_counted(frame), self.keys) for frame in left]
        opposite = [frame for frame in taken if frame is not None]
        if len(opposite) < len(taken):  # not finite: only the slices themselves can tell
            return self._merged(list(map(_counted, inside)))
        added = map(_counted, inside[len(inside) - entered :])
        merged = self._merged([window, *added, *opposite])
        return merged.filter(pl.col(_SLICES) > 0)


def _counted(frame: pl.DataFrame) -> pl.DataFrame:
    ones = pl.Series(_SLICES, [1], dtype=pl.Int64).new_from_index(0, frame.height)
    return frame.with_columns(ones)


class Blocks(Running):
    """Merges neighbours in twos, fours, eights, …: few of these blocks cover a window."""

    def __init__(self, keys: Sequence[str], accumulators: Mapping[str, Accumulator]) -> None:
        super().__init__(keys, accumulators)
        self._blocks: dict[tuple[int, int], pl.DataFrame] = {}
        """(level, begin) -> merged slices [begin, begin + 2^level), counted from the first ever."""
        self._begin = 0
        self._end = 0

    def move(
        self, left: Sequence[pl.DataFrame], inside: Sequence[pl.DataFrame], entered: int
    ) -> pl.DataFrame:
        """Forget blocks of what leaves, build those that are full, and merge a cover."""
        self._begin += len(left)
        self._blocks = {
            place: block for place, block in self._blocks.items() if place[1] >= self._begin
        }
        for frame in inside[len(inside) - entered :]:
            self._add(frame)
        return self._merged(self._cover()).sort(self.keys)

    def _add(self, frame: pl.DataFrame) -> None:
        self._blocks[0, self._end] = frame
        self._end += 1
        level, size = 0, 1
        while self._end % (2 * size) == 0:
            first = self._blocks.get((level, self._end - 2 * size))
            if first is None:  # it has left
                return
            second = self._blocks[level, self._end - size]
            level, size = level + 1, 2 * size
            self._blocks[level, self._end - size] = self._merged([first, second])

    def _cover(self) -> list[pl.DataFrame]:
        found: list[pl.DataFrame] = []
        begin = self._begin
        while begin < self._end:
            level = 0
            while (level + 1, begin) in self._blocks:
                level += 1
            found.append(self._blocks[level, begin])
            begin += 1 << level
        return found
