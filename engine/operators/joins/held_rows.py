"""Rows that joins hold: in runs sorted by key and time, where ranges of time are found fast.

    add ──▶ [big run, smaller run, small run]     a run that is not much larger than the next takes
                                                  it in, so there are few, and rows move seldom
    meet ──▶ (rows of a run, rows of another) with one key, and times at a distance in between

Cost     a row moves about log2 of all rows times; two runs meet in one pass over the smaller one.
         What has expired goes when it is half of its run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.elements import EVENT_TIME
from engine.frames import kept
from engine.kernels import KeySlots, active

_MOST_PAIRS = 500_000
"""So many pairs are made at once: a hot key may have more than fit into memory."""

_SMALL = 2**16
"""NumPy sorts integers below this ten times as fast as larger ones."""

Places = npt.NDArray[np.int64]
_Slots = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Run:
    """Rows in order of key and time."""

    rows: pl.DataFrame
    slots: _Slots
    times: Places

    @classmethod
    def of(cls, rows: pl.DataFrame, slots: _Slots) -> Run:
        """Sort rows with the slots of their keys."""
        times = rows.get_column(EVENT_TIME)
        by_time = np.arange(len(times)) if times.is_sorted() else times.arg_sort().to_numpy()
        ordered = slots[by_time]
        narrow = ordered.astype(np.uint16) if ordered.max(initial=0) < _SMALL else ordered
        order = by_time[np.argsort(narrow, kind="stable")]
        return cls(rows[order], slots[order], times.to_numpy()[order])

    def only(self, mask: npt.NDArray[np.bool_]) -> Run:
        """Some of its rows."""
        return Run(kept(self.rows, pl.Series(mask)), self.slots[mask], self.times[mask])

    def meet(self, other: Run, lower: int, upper: int) -> Iterator[tuple[Places, Places]]:
        """(my rows, its rows) that have one key, and lower <= its time - my time <= upper."""
        begins, ends = np.empty_like(self.times), np.empty_like(self.times)
        asked, rows = (self.slots, self.times), (other.slots, other.times)
        active().near(asked, rows, lower, upper, begins, ends)
        counts = ends - begins
        totals = counts.cumsum()
        at = 0
        while at < len(counts):
            done = totals[at - 1] if at else 0
            stop = max(at + 1, int(totals.searchsorted(done + _MOST_PAIRS, side="right")))
            some = counts[at:stop]
            mine = np.repeat(np.arange(at, stop), some)
            # Within each row's range: 0, 1, 2 …
            within = np.arange(len(mine)) - np.repeat(some.cumsum() - some, some)
            if len(mine):
                yield mine, np.repeat(begins[at:stop], some) + within
            at = stop


class HeldRows:
    """What one side of a join holds."""

    def __init__(self, keys: Sequence[str], slots: KeySlots, rows: pl.DataFrame | None) -> None:
        """`slots`: of the keys of both sides, whatever they are called."""
        self._keys = tuple(keys)
        self._slots = slots
        self.runs: list[Run] = []
        if rows is not None:
            self.add(self.run(rows))

    @property
    def height(self) -> int:
        """How many rows are held."""
        return sum(run.rows.height for run in self.runs)

    def run(self, rows: pl.DataFrame) -> Run:
        """Rows as a run that is not held yet."""
        pairs = zip(self._keys, self._slots.keys, strict=True)
        keys = pl.DataFrame([rows.get_column(key).alias(name) for key, name in pairs])
        return Run.of(rows, self._slots.of(keys))

    def add(self, run: Run) -> None:
        """Hold a run."""
        self.runs.append(run)
        while len(self.runs) > 1 and self.runs[-2].rows.height < 2 * self.runs[-1].rows.height:
            small, large = self.runs.pop(), self.runs.pop()
            rows = pl.concat([large.rows, small.rows], rechunk=True)
            self.runs.append(Run.of(rows, np.concatenate([large.slots, small.slots])))

    def expire(self, time: int) -> None:
        """Let go of rows with event_time < time, in runs of which at least half are that old."""
        left = [_without(run, time) for run in self.runs]
        self.runs = [run for run in left if run is not None]


def _without(run: Run, time: int) -> Run | None:
    old = int((run.times < time).sum())
    if old == len(run.times):
        return None
    if 2 * old < len(run.times):
        return run
    return run.only(run.times >= time)
