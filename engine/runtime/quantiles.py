"""Percentiles and histograms as Flink tells them.

Source   Apache Commons Math's `Percentile` (LEGACY): position p (n + 1) / 100 among the sorted
         values, interpolated, clamped to the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

HISTOGRAM_PERCENTILES = {
    "median": 50.0, "p75": 75.0, "p90": 90.0, "p95": 95.0, "p98": 98.0, "p99": 99.0, "p999": 99.9,
}  # fmt: skip


def percentile(ordered: Sequence[float], percent: float) -> float:
    """A percentile of at least one sorted value.

    >>> percentile([1.0, 3.0], 50.0), percentile([1.0, 3.0], 99.0)
    (2.0, 3.0)
    """
    position = percent * (len(ordered) + 1) / 100
    if position < 1:
        return float(ordered[0])
    if position >= len(ordered):
        return float(ordered[-1])
    below = int(position)
    low, high = ordered[below - 1], ordered[below]
    return low + (position - below) * (high - low)


def histogram(values: Sequence[float]) -> dict[str, float]:
    """What Flink tells of a histogram; at least one value."""
    ordered = sorted(values)
    spread = stdev(ordered) if len(ordered) > 1 else 0.0
    ends = {"count": len(ordered), "min": ordered[0], "max": ordered[-1]}
    middle = {"mean": fmean(ordered), "stddev": spread}
    shares = {name: percentile(ordered, at) for name, at in HISTOGRAM_PERCENTILES.items()}
    return ends | middle | shares
