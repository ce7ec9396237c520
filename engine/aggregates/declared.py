"""Aggregates as a job declares them: a kind, and what it is taken of.

Shapes   each takes a column name or a Polars expression of single rows. As in Polars, nulls are
         left out: the sum of nothing is 0, its mean, min and max are null.
Order    sums and means of floats are exact and rounded once; min and max treat -0.0 as 0.0. No
         result depends on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from engine.aggregates.accumulators import Accumulator, Count, ExactSum, Extreme, Mean, WholeSum
from engine.errors import GraphError


class AggregationKind(StrEnum):
    """What an aggregate computes."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of a window."""

    kind: AggregationKind
    of: pl.Expr

    def accumulator(self, name: str, dtype: pl.DataType) -> Accumulator:
        """How to keep this aggregate of values of a type. Raises GraphError."""
        match self.kind:
            case AggregationKind.COUNT:
                return Count(name)
            case AggregationKind.SUM:
                return _sum_of(self.kind, name, dtype)(name)
            case AggregationKind.MEAN:
                return Mean(name, _sum_of(self.kind, name, dtype))
            case AggregationKind.MIN | AggregationKind.MAX:
                _check_ordered(self.kind, name, dtype)
                return Extreme(name, dtype, largest=self.kind is AggregationKind.MAX)

    def __str__(self) -> str:
        of = "" if self.of.meta.is_literal() else str(self.of)
        return f"{self.kind}({of})"


def _sum_of(kind: AggregationKind, name: str, dtype: pl.DataType) -> type[ExactSum | WholeSum]:
    if dtype.is_float():
        return ExactSum
    if dtype.is_integer() or dtype == pl.Boolean:
        return WholeSum
    msg = f"aggregate {name!r} cannot take the {kind} of {dtype}; cast the column to a number"
    raise GraphError(msg)


def _check_ordered(kind: AggregationKind, name: str, dtype: pl.DataType) -> None:
    if not (dtype.is_numeric() or dtype.is_temporal() or dtype in (pl.String, pl.Boolean)):
        msg = f"aggregate {name!r} cannot take the {kind} of {dtype}; use numbers, times or text"
        raise GraphError(msg)


def _expression(of: str | pl.Expr) -> pl.Expr:
    return pl.col(of) if isinstance(of, str) else of


def count(of: str | pl.Expr | None = None) -> Aggregation:
    """How many rows; or how many values that are not null.

    >>> str(count()), str(count("delay"))
    ('count()', 'count(col("delay"))')
    """
    return Aggregation(AggregationKind.COUNT, pl.lit(1) if of is None else _expression(of))


def sum(of: str | pl.Expr) -> Aggregation:  # noqa: A001  written agg.sum
    """The sum: Int64 of integers and booleans, an exact Float64 of floats.

    >>> str(sum(pl.col("cancelled") & pl.col("domestic")))
    'sum([(col("cancelled")) & (col("domestic"))])'
    """
    return Aggregation(AggregationKind.SUM, _expression(of))


def mean(of: str | pl.Expr) -> Aggregation:
    """The exact sum over the count of values that are not null."""
    return Aggregation(AggregationKind.MEAN, _expression(of))


def min(of: str | pl.Expr) -> Aggregation:  # noqa: A001  written agg.min
    """The smallest value."""
    return Aggregation(AggregationKind.MIN, _expression(of))


def max(of: str | pl.Expr) -> Aggregation:  # noqa: A001  written agg.max
    """The largest value."""
    return Aggregation(AggregationKind.MAX, _expression(of))
