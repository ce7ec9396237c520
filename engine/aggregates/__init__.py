"""Aggregates of windows: count, sum, mean, min, max, and more. `from engine import agg`."""

from __future__ import annotations

from engine.aggregates.accumulators import Accumulator
from engine.aggregates.custom import AggregateFunction
from engine.aggregates.declared import (  # written agg.sum, so they may be named as built-ins
    Aggregation,
    AggregationKind,
    collect,
    count,
    custom,
    first,
    last,
    max,  # noqa: A004
    mean,
    min,  # noqa: A004
    n_unique,
    quantile,
    std,
    sum,  # noqa: A004
    top_k,
    var,
)
from engine.aggregates.partials import ROWS, Partials

__all__ = [
    "ROWS",
    "Accumulator",
    "AggregateFunction",
    "Aggregation",
    "AggregationKind",
    "Partials",
    "collect",
    "count",
    "custom",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "n_unique",
    "quantile",
    "std",
    "sum",
    "top_k",
    "var",
]
