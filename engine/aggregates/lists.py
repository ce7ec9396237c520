"""Aggregates that keep values themselves: how many different ones, the largest few, all of them.

    values --group--> sorted list --join, sort--> sorted list

Order    lists are sorted, so neither the order of rows nor of merges can be seen in them.
Cost     `n_unique` and `collect` hold every value that they must tell apart.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates.accumulators import Accumulator, unsigned_zeros


class ValueList(Accumulator):
    """A sorted list of values that are not null, cut in some way."""

    def __init__(self, name: str, dtype: pl.DataType) -> None:
        super().__init__(name)
        self._dtype = dtype

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {self.name: pl.List(self._dtype)}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Leave the values as they are: grouping makes the lists."""
        return [unsigned_zeros(values).cast(self._dtype).alias(self.name)]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the values, or the lists, of a group."""
        column = pl.col(self.name)
        if isinstance(frame.schema[self.name], pl.List):
            column = column.explode()
        return [self._cut(column.drop_nulls())]

    @abstractmethod
    def _cut(self, values: pl.Expr) -> pl.Expr:
        """Sort the values of a group, and leave out what the result does not need."""

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The list itself."""
        return frame.get_column(self.name)


class Collected(ValueList):
    """All values, sorted."""

    def _cut(self, values: pl.Expr) -> pl.Expr:
        return values.sort()


class UniqueCount(ValueList):
    """How many different values there are."""

    def _cut(self, values: pl.Expr) -> pl.Expr:
        return values.unique().sort()

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The length of the list."""
        return frame.get_column(self.name).list.len().cast(pl.Int64)


class Largest(ValueList):
    """The largest values, from the largest down."""

    def __init__(self, name: str, dtype: pl.DataType, k: int) -> None:
        super().__init__(name, dtype)
        self._k = k

    def _cut(self, values: pl.Expr) -> pl.Expr:
        if self._dtype.is_float():
            values = values.filter(values.is_not_nan())
        return values.sort(descending=True).head(self._k)
