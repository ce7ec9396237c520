"""Partials: what a chart needs to know of some points of a series, so that steps can be made of it.

    points ──of_points──▶ partials, one a point ──rolled(step)──▶ one a step ──values──▶ a line

Shapes   arrays of equal length, ordered by start; a partial of a point is the point.
Guarantee  the same points give the same partials, bit by bit: sums are taken in order of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controlplane.metrics.contract import Aggregate

Ints = NDArray[np.int64]
Numbers = NDArray[Any]
"""int64, float64, or booleans."""


@dataclass(frozen=True, slots=True)
class Points:
    """Points of one field of one series."""

    times: Ints
    """ns, rising."""
    values: Numbers

    def __len__(self) -> int:
        return len(self.times)

    def within(self, low: int, high: int) -> Points:
        """Those of [low, high)."""
        ends = np.searchsorted(self.times, [low, high])
        return Points(self.times[ends[0] : ends[1]], self.values[ends[0] : ends[1]])

    def overwritten_by(self, newer: Points) -> Points:
        """Both; of two at one time the newer."""
        times = np.concatenate((self.times, newer.times))
        order = np.argsort(times, kind="stable")
        last = np.append(np.diff(times[order]) != 0, True)[: len(times)]
        kept = order[last]
        return Points(times[kept], np.concatenate((self.values, newer.values))[kept])


@dataclass(frozen=True, slots=True)
class Partials:
    """Some points each, from `start` on."""

    start: Ints
    """ns."""
    low: Numbers
    high: Numbers
    total: NDArray[np.float64]
    count: Ints
    last: Numbers

    def __len__(self) -> int:
        return len(self.start)

    def where(self, mask: NDArray[np.bool_]) -> Partials:
        """Some of them."""
        return Partials(*(column[mask] for column in _columns(self)))

    def within(self, low: int, high: int) -> Partials:
        """Those that start in [low, high)."""
        return self.where((self.start >= low) & (self.start < high))


def _columns(partials: Partials) -> tuple[Numbers, ...]:
    return (
        partials.start,
        partials.low,
        partials.high,
        partials.total,
        partials.count,
        partials.last,
    )


def of_points(points: Points) -> Partials:
    """One partial for each point."""
    values = points.values
    total = values.astype(np.float64)
    return Partials(points.times, values, values, total, np.ones(len(points), np.int64), values)


def together(parts: Sequence[Partials]) -> Partials:
    """All of them, ordered by start."""
    columns = [np.concatenate(column) for column in zip(*map(_columns, parts), strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Partials(*(column[order] for column in columns))


def rolled(partials: Partials, step_ns: int) -> Partials:
    """One partial for each step that has any."""
    if not len(partials):
        return partials
    start = partials.start // step_ns * step_ns
    first = np.flatnonzero(np.append(True, np.diff(start) != 0))
    last = np.append(first[1:], len(start)) - 1
    return Partials(
        start[first],
        np.minimum.reduceat(partials.low, first),
        np.maximum.reduceat(partials.high, first),
        np.add.reduceat(partials.total, first),
        np.add.reduceat(partials.count, first),
        partials.last[last],
    )


def values(partials: Partials, aggregate: Aggregate) -> Numbers:
    """One number each."""
    match aggregate:
        case Aggregate.MEAN:
            mean: Numbers = partials.total / partials.count
            return mean
        case Aggregate.MIN:
            return partials.low
        case Aggregate.MAX:
            return partials.high
        case Aggregate.SUM:
            return partials.total
        case Aggregate.COUNT:
            return partials.count
        case Aggregate.LAST:
            return partials.last
