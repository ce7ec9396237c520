"""Aggregates of windows: count, sum, mean, min, max. `from engine import agg`."""

from __future__ import annotations

from engine.aggregates.declared import Aggregation, AggregationKind, count, max, mean, min, sum
from engine.aggregates.partials import ROWS, Partials

__all__ = [
    "ROWS",
    "Aggregation",
    "AggregationKind",
    "Partials",
    "count",
    "max",
    "mean",
    "min",
    "sum",
]
