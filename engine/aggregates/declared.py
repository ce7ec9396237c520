"""Aggregates as a job declares them: a kind, and what it is taken of.

Shapes   each takes a column name or a Polars expression of single rows. As in Polars, nulls are
         left out: the sum of nothing is 0, its mean, min and max are null.
Order    no result depends on the order of rows: sums, means and variances of floats are exact and
         rounded once; min and max treat -0.0 as 0.0; `first` and `last` go by event time, and among
         rows of one time by value; lists are sorted.
Errors   GraphError when an aggregate does not fit the type of its column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

import polars as pl

from engine.aggregates.accumulators import Accumulator, Count, ExactSum, Extreme, Mean, WholeSum
from engine.aggregates.cardinality import UniqueSketch
from engine.aggregates.custom import AggregateFunction, Custom
from engine.aggregates.lists import Collected, Largest, UniqueCount
from engine.aggregates.moments import Deviation, Variance
from engine.aggregates.ordered import AtTime
from engine.aggregates.quantiles import Quantile
from engine.elements import EVENT_TIME
from engine.errors import GraphError


class AggregationKind(StrEnum):
    """What an aggregate computes."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    FIRST = "first"
    LAST = "last"
    VAR = "var"
    STD = "std"
    N_UNIQUE = "n_unique"
    QUANTILE = "quantile"
    TOP_K = "top_k"
    COLLECT = "collect"
    CUSTOM = "custom"


Make = Callable[[str, pl.DataType], Accumulator]
"""(name, type of the values) -> how to keep the aggregate. Raises GraphError."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate of a window."""

    kind: AggregationKind
    of: pl.Expr
    make: Make = field(repr=False)
    text: str | None = None
    """What it is taken of, for people, when not `of`."""

    def accumulator(self, name: str, dtype: pl.DataType) -> Accumulator:
        """How to keep this aggregate of values of a type. Raises GraphError."""
        return self.make(name, dtype)

    def __str__(self) -> str:
        of = "" if self.of.meta.is_literal() else str(self.of)
        return f"{self.kind}({of if self.text is None else self.text})"


Of = str | pl.Expr


def _expression(of: Of) -> pl.Expr:
    return pl.col(of) if isinstance(of, str) else of


def count(of: Of | None = None) -> Aggregation:
    """How many rows; or how many values that are not null.

    >>> str(count()), str(count("delay"))
    ('count()', 'count(col("delay"))')
    """
    expression = pl.lit(1) if of is None else _expression(of)
    return Aggregation(AggregationKind.COUNT, expression, lambda name, _: Count(name))


def sum(of: Of) -> Aggregation:  # noqa: A001  written agg.sum
    """The sum: Int64 of integers and booleans, an exact Float64 of floats.

    >>> str(sum(pl.col("cancelled") & pl.col("domestic")))
    'sum([(col("cancelled")) & (col("domestic"))])'
    """
    kind = AggregationKind.SUM
    return Aggregation(kind, _expression(of), lambda name, dtype: _sum_of(kind, name, dtype)(name))


def mean(of: Of) -> Aggregation:
    """The exact sum over the count of values that are not null."""
    kind = AggregationKind.MEAN
    return Aggregation(
        kind, _expression(of), lambda name, dtype: Mean(name, _sum_of(kind, name, dtype))
    )


def min(of: Of) -> Aggregation:  # noqa: A001  written agg.min
    """The smallest value."""
    return _extreme(AggregationKind.MIN, of)


def max(of: Of) -> Aggregation:  # noqa: A001  written agg.max
    """The largest value."""
    return _extreme(AggregationKind.MAX, of)


def _extreme(kind: AggregationKind, of: Of) -> Aggregation:
    def make(name: str, dtype: pl.DataType) -> Accumulator:
        _check_ordered(kind, name, dtype)
        return Extreme(name, dtype, largest=kind is AggregationKind.MAX)

    return Aggregation(kind, _expression(of), make)


def first(of: Of) -> Aggregation:
    """The value of the row with the smallest event time; of several, the smallest value.

    >>> str(first("price"))
    'first(col("price"))'
    """
    return _at_time(AggregationKind.FIRST, of)


def last(of: Of) -> Aggregation:
    """The value of the row with the largest event time; of several, the largest value.

    >>> str(last("price"))
    'last(col("price"))'
    """
    return _at_time(AggregationKind.LAST, of)


def _at_time(kind: AggregationKind, of: Of) -> Aggregation:
    def make(name: str, dtype: pl.DataType) -> Accumulator:
        assert isinstance(dtype, pl.Struct)
        value = dtype.to_schema()["value"]
        assert isinstance(value, pl.DataType)
        _check_ordered(kind, name, value)
        return AtTime(name, value, latest=kind is AggregationKind.LAST)

    value = _expression(of)
    both = pl.struct(time=pl.col(EVENT_TIME), value=value)
    return Aggregation(kind, both, make, str(value))


def var(of: Of, ddof: int = 1) -> Aggregation:
    """The variance, with `ddof` taken from the count; null of fewer values than that and one.

    Of exact sums, so that values that are large and close together lose nothing.

    >>> str(var("delay"))
    'var(col("delay"))'
    """
    return _moment(AggregationKind.VAR, of, ddof)


def std(of: Of, ddof: int = 1) -> Aggregation:
    """The standard deviation: the root of `var`.

    >>> str(std("delay", ddof=0))
    'std(col("delay"))'
    """
    return _moment(AggregationKind.STD, of, ddof)


def _moment(kind: AggregationKind, of: Of, ddof: int) -> Aggregation:
    if ddof < 0:
        msg = f"ddof of {kind} is negative: got {ddof}; pass 1 for a sample, 0 for all there is"
        raise GraphError(msg)

    def make(name: str, dtype: pl.DataType) -> Accumulator:
        _check_number(kind, name, dtype)
        made = Variance if kind is AggregationKind.VAR else Deviation
        return made(name, ddof)

    return Aggregation(kind, _expression(of), make)


def n_unique(of: Of, *, exact: bool = True, accuracy: float = 0.02) -> Aggregation:
    """How many different values; state holds each of them.

    With `exact=False` to a relative standard error of at most `accuracy`, so in 19 of 20 cases to
    twice that, and state is a sketch of at most 16 KB at 2 %, or 64 KB at 1 %.

    >>> str(n_unique("visitor")), str(n_unique("visitor", exact=False))
    ('n_unique(col("visitor"))', 'n_unique(col("visitor"), about)')
    """
    if exact:
        return _list(AggregationKind.N_UNIQUE, of, UniqueCount)
    if not 1e-3 <= accuracy < 0.3:
        msg = f"accuracy of n_unique is out of range: got {accuracy}; pass 0.001 to 0.2, e.g. 0.02"
        raise GraphError(msg)
    made = _list(AggregationKind.N_UNIQUE, of, lambda name, _: UniqueSketch(name, accuracy))
    return Aggregation(made.kind, made.of, made.make, f"{made.of}, about")


def collect(of: Of) -> Aggregation:
    """All values, as a sorted list; state holds each of them.

    >>> str(collect("delay"))
    'collect(col("delay"))'
    """
    return _list(AggregationKind.COLLECT, of, Collected)


def top_k(of: Of, k: int) -> Aggregation:
    """The `k` largest values, as a list from the largest down; NaN is left out.

    >>> str(top_k("delay", 3))
    'top_k(col("delay"), 3)'
    """
    if k < 1:
        msg = f"k of top_k must be positive: got {k}; pass e.g. top_k('delay', 3)"
        raise GraphError(msg)
    made = _list(AggregationKind.TOP_K, of, lambda name, dtype: Largest(name, dtype, k))
    return Aggregation(made.kind, made.of, made.make, f"{made.of}, {k}")


def _list(kind: AggregationKind, of: Of, made: Make) -> Aggregation:
    def make(name: str, dtype: pl.DataType) -> Accumulator:
        _check_ordered(kind, name, dtype)
        return made(name, dtype)

    return Aggregation(kind, _expression(of), make)


def quantile(of: Of, q: float, accuracy: float = 0.01) -> Aggregation:
    """The value that a share `q` of the values does not exceed, to a relative `accuracy`.

    By nearest rank; 0.5 is the median. State is a count per bucket of nearly equal values.

    >>> str(quantile("delay", 0.99))
    'quantile(col("delay"), 0.99)'
    """
    if not 0 <= q <= 1:
        msg = f"q of quantile is not a share: got {q}; pass a number from 0 to 1, e.g. 0.99"
        raise GraphError(msg)
    if not 1e-6 <= accuracy < 1:
        msg = f"accuracy of quantile is out of range: got {accuracy}; pass e.g. 0.01"
        raise GraphError(msg)

    def make(name: str, dtype: pl.DataType) -> Accumulator:
        _check_number(AggregationKind.QUANTILE, name, dtype)
        return Quantile(name, q, accuracy)

    value = _expression(of)
    return Aggregation(AggregationKind.QUANTILE, value, make, f"{value}, {q}")


def custom(function: AggregateFunction, of: Of) -> Aggregation:
    """An aggregate of your own: see `AggregateFunction`."""
    if not isinstance(function, AggregateFunction):
        msg = f"custom aggregate is not one: got {function!r}; pass an agg.AggregateFunction"
        raise GraphError(msg)
    kind = AggregationKind.CUSTOM
    value = _expression(of)
    label = f"{type(function).__name__}, {value}"
    return Aggregation(kind, value, lambda name, _: Custom(name, function), label)


def _sum_of(kind: AggregationKind, name: str, dtype: pl.DataType) -> type[ExactSum | WholeSum]:
    _check_number(kind, name, dtype)
    return ExactSum if dtype.is_float() else WholeSum


def _check_number(kind: AggregationKind, name: str, dtype: pl.DataType) -> None:
    if not (dtype.is_float() or dtype.is_integer() or dtype == pl.Boolean):
        msg = f"aggregate {name!r} cannot take the {kind} of {dtype}; cast the column to a number"
        raise GraphError(msg)


def _check_ordered(kind: AggregationKind, name: str, dtype: pl.DataType) -> None:
    if not (dtype.is_numeric() or dtype.is_temporal() or dtype in (pl.String, pl.Boolean)):
        msg = f"aggregate {name!r} cannot take the {kind} of {dtype}; use numbers, times or text"
        raise GraphError(msg)
