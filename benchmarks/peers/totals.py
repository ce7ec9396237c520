"""What the output of a work adds up to, and what it must add up to.

    results    rows of output         rows   sum of their counts
    total      sum of their sums      mark   weighs each result by its key and window

Needs    NumPy only: the scripts of peers import it where Headwater is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.peers.work import BEGAN, GAP, SIZE, SLIDE, Floats, Ints, Work

WRAP = 2**64
LEAD = 1_000
"""ms before `BEGAN` in which the first events may lie."""


class Totals(NamedTuple):
    """Equal for equal outputs, in whatever order."""

    results: int
    rows: int
    total: float
    mark: int


def totals(rows: Iterable[tuple[int, int, int, float]]) -> Totals:
    """Add up results (key, start of the window in ms, count, sum)."""
    found = list(rows)
    if not found:
        return Totals(0, 0, 0.0, 0)
    keys, starts, counts, sums = zip(*found, strict=True)
    return of_columns(
        np.array(keys, np.int64),
        np.array(starts, np.int64),
        np.array(counts, np.int64),
        np.array(sums, np.float64),
    )


def of_columns(key: Ints, start: Ints, count: Ints, value: Floats) -> Totals:
    """Add up results that are columns."""
    weight = (start - BEGAN) * 31 + key * 7 + 1
    mark = int((weight * (3 * count + value.astype(np.int64))).sum()) % WRAP
    return Totals(len(key), int(count.sum()), float(value.sum()), mark)


def running(keys: Iterable[int], values: Iterable[float]) -> Totals:
    """Add up running sums: each is a result of one row."""
    return totals((key, BEGAN, 1, value) for key, value in zip(keys, values, strict=True))


def expected(work: Work, rows: int) -> Totals:
    """What the output must add up to, by definition rather than by streaming."""
    key, time, value = work.events(0, rows)
    match work.name:
        case "running":
            return _running(key, value)
        case "session":
            return _sessions(key, time, value)
        case "sliding":
            return _windows(work, key, time, value, SLIDE // SIZE)
        case _:
            return _windows(work, key, time, value, 1)


def _windows(work: Work, key: Ints, time: Ints, value: Floats, steps: int) -> Totals:
    """Each step of the windows as a column of keys; a window is the sum of some columns."""
    step = (time - (BEGAN - LEAD)) // SIZE + (steps - 1)
    shape = (int(step.max()) + 1, work.keys)
    cell = step * work.keys + key
    count = _over(np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape), steps)
    total = _over(np.bincount(cell, value, shape[0] * shape[1]).reshape(shape), steps)
    starts, keys = np.nonzero(count)
    first = BEGAN - LEAD - (steps - 1) * SIZE
    return of_columns(keys, first + starts * SIZE, count[starts, keys], total[starts, keys])


def _over(cells: npt.NDArray[Any], steps: int) -> npt.NDArray[Any]:
    """For each row of cells, the sum of it and the rows after it, `steps` in all."""
    if steps == 1:
        return cells
    below = np.zeros((steps, cells.shape[1]), cells.dtype)
    summed = np.cumsum(np.vstack([below[:1], cells, below[1:]]), axis=0)
    over: npt.NDArray[Any] = summed[steps:] - summed[:-steps]
    return over


def _sessions(key: Ints, time: Ints, value: Floats) -> Totals:
    order = np.lexsort((time, key))
    key, time, value = key[order], time[order], value[order]
    new = np.ones(len(key), bool)
    new[1:] = (key[1:] != key[:-1]) | (time[1:] - time[:-1] > GAP)
    first = np.flatnonzero(new)
    count = np.diff(np.append(first, len(key)))
    return of_columns(key[first], time[first], count, np.add.reduceat(value, first))


def _running(key: Ints, value: Floats) -> Totals:
    order = np.argsort(key, kind="stable")
    key, summed = key[order], np.cumsum(value[order])
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    before = np.append(0.0, summed)[first]
    sums = summed - np.repeat(before, np.diff(np.append(first, len(key))))
    return of_columns(key, np.full(len(key), BEGAN), np.ones(len(key), np.int64), sums)
