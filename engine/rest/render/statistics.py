"""Small statistics under the names that Flink gives them."""

from __future__ import annotations

from collections.abc import Sequence

from engine.runtime.quantiles import percentile

SUMMARY_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
AGGREGATED_PERCENTILES = {"p25": 25.0, "median": 50.0, "p75": 75.0, "p95": 95.0}


def summary(values: Sequence[int]) -> dict[str, object]:
    """Min, max, mean and percentiles of a checkpoint figure; Flink's zeros and "NaN" for none."""
    if not values:
        return {"min": 0, "max": 0, "avg": 0} | dict.fromkeys(SUMMARY_PERCENTILES, "NaN")
    ordered = sorted(values)
    ends = {"min": ordered[0], "max": ordered[-1], "avg": sum(ordered) // len(ordered)}
    return ends | {name: percentile(ordered, at) for name, at in SUMMARY_PERCENTILES.items()}


def aggregated(values: Sequence[int]) -> dict[str, int]:
    """The integer figures that Flink shows over the subtasks of a vertex; at least one value."""
    ordered = sorted(values)
    total = sum(ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "avg": total // len(ordered),
        "sum": total,
    } | {name: int(percentile(ordered, at)) for name, at in AGGREGATED_PERCENTILES.items()}


def skew(values: Sequence[float]) -> float:
    """Mean distance from the mean, in percent of it: 0 when subtasks share the work evenly.

    >>> skew([5.0, 15.0])
    50.0
    """
    mean = sum(values) / len(values)
    if mean == 0:
        return 0.0
    return sum(abs(value - mean) for value in values) / len(values) / abs(mean) * 100
