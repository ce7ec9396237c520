"""Aggregates of windows: count, sum, mean, min, max. `from engine import agg`."""

from __future__ import annotations

from engine.aggregates.accumulators import Accumulator
from engine.aggregates.declared import (  # written agg.sum, so they may be named as built-ins
    Aggregation,
    AggregationKind,
    count,
    max,  # noqa: A004
    mean,
    min,  # noqa: A004
    sum,  # noqa: A004
)
from engine.aggregates.partials import ROWS, Partials

__all__ = [
    "ROWS",
    "Accumulator",
    "Aggregation",
    "AggregationKind",
    "Partials",
    "count",
    "max",
    "mean",
    "min",
    "sum",
]
