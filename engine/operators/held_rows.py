"""Rows that joins hold: in runs sorted by key and time, where ranges of time are found fast.

    add ──▶ [big run, smaller run, small run]     a run that is not much larger than the next takes
                                                  it in, so there are few, and rows move seldom
    meet ──▶ (rows of a run, rows of another) with one key, and times at a distance in between

Cost     a row moves about log2 of all rows times; finding a range is two binary searches per run.
         What has expired goes when its run is merged, or as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from engine.elements import EVENT_TIME
from engine.operators.key_numbers import KeyNumbers, Numbers

_MOST_PAIRS = 500_000
"""So many pairs are made at once: a hot key may have more than fit into memory."""


@dataclass(frozen=True, slots=True)
class Run:
    """Rows in order of key and time."""

    rows: pl.DataFrame
    numbers: Numbers
    times: Numbers
    distinct: Numbers
    """All times, once each, in order."""
    places: Numbers
    """Key and place among the distinct times as one number: never too large, unlike the times."""

    @classmethod
    def of(cls, rows: pl.DataFrame, numbers: Numbers) -> Run:
        """Sort rows with the numbers of their keys."""
        times = rows.get_column(EVENT_TIME).to_numpy()
        order = np.lexsort((times, numbers))
        distinct, ranks = np.unique(times[order], return_inverse=True)
        places = numbers[order] * (len(distinct) + 1) + ranks + 1
        return cls(rows[order], numbers[order], times[order], distinct, places)

    def ranges(self, numbers: Numbers, since: Numbers, until: Numbers) -> tuple[Numbers, Numbers]:
        """Where the rows [begin, end) of keys lie, with since <= time <= until."""
        base = numbers * (len(self.distinct) + 1)
        first = base + self.distinct.searchsorted(since) + 1
        last = base + self.distinct.searchsorted(until, side="right")
        return self.places.searchsorted(first), self.places.searchsorted(last, side="right")

    def meet(self, other: Run, lower: int, upper: int) -> Iterator[tuple[Numbers, Numbers]]:
        """(my rows, its rows) that have one key, and lower <= its time - my time <= upper."""
        begins, ends = other.ranges(self.numbers, self.times + lower, self.times + upper)
        counts = np.maximum(ends - begins, 0)
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

    def __init__(self, keys: Sequence[str], numbers: KeyNumbers, rows: pl.DataFrame | None) -> None:
        self._keys = tuple(keys)
        self._numbers = numbers
        self.runs: list[Run] = []
        if rows is not None:
            self.add(self.run(rows))

    @property
    def height(self) -> int:
        """How many rows are held."""
        return sum(run.rows.height for run in self.runs)

    def run(self, rows: pl.DataFrame) -> Run:
        """Rows as a run that is not held yet."""
        return Run.of(rows, self._numbers.add([rows.get_column(key) for key in self._keys]))

    def add(self, run: Run) -> None:
        """Hold a run."""
        self.runs.append(run)
        while len(self.runs) > 1 and self.runs[-2].rows.height < 2 * self.runs[-1].rows.height:
            small, large = self.runs.pop(), self.runs.pop()
            rows = pl.concat([large.rows, small.rows], rechunk=True)
            self.runs.append(Run.of(rows, np.concatenate([large.numbers, small.numbers])))

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
    left = run.times >= time
    return Run.of(run.rows.filter(pl.Series(left)), run.numbers[left])
