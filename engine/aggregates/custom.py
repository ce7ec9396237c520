"""Aggregates that an author writes: add a value, merge two accumulators, give the result.

Order    rows come in any order and accumulators merge in any order, so that the same output comes
         out whatever the batches and the parallelism, `add` and `merge` must not depend on it:
         integers and sets are safe, sums of floats are not.
Cost     a Python call per row and per merge: columns are ten to a hundred times as fast.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

import polars as pl

from engine.aggregates.accumulators import Accumulator
from engine.errors import FunctionError, GraphError
from engine.state.schema import TypeLike, as_type

Fields = Mapping[str, Any]


class AggregateFunction(ABC):
    """An aggregate of your own.

    >>> class Range(AggregateFunction):
    ...     fields = {"low": int, "high": int}
    ...     result_type = int
    ...     def create(self):
    ...         return {"low": 10**9, "high": -(10**9)}
    ...     def add(self, fields, value):
    ...         return {"low": min(fields["low"], value), "high": max(fields["high"], value)}
    ...     def merge(self, one, other):
    ...         return self.add(self.add(one, other["low"]), other["high"])
    ...     def result(self, fields):
    ...         return fields["high"] - fields["low"]
    >>> Range().result(Range().merge(Range().add(Range().create(), 3), {"low": 1, "high": 2}))
    2
    """

    fields: ClassVar[Mapping[str, TypeLike]]
    """Names and types of what an accumulator holds: what snapshots keep."""

    result_type: ClassVar[TypeLike]
    """The type of the result column."""

    @abstractmethod
    def create(self) -> Fields:
        """An accumulator of no values."""

    @abstractmethod
    def add(self, fields: Fields, value: Any) -> Fields:
        """The accumulator with one value more. Called for values that are not null."""

    @abstractmethod
    def merge(self, one: Fields, other: Fields) -> Fields:
        """The accumulator of the values of both."""

    @abstractmethod
    def result(self, fields: Fields) -> Any:
        """What the window gives."""


class Custom(Accumulator):
    """Keeps the fields of a function's accumulators as columns."""

    def __init__(self, name: str, function: AggregateFunction) -> None:
        super().__init__(name)
        self._function = function
        self._value = f"{name}.value"
        self._types = {field: as_type(dtype) for field, dtype in function.fields.items()}
        self._result_type = as_type(function.result_type)
        if not self._types or set(function.create()) != set(self._types):
            msg = (
                f"aggregate {name!r} creates other fields than it declares: got "
                f"{sorted(function.create())}, declared {sorted(self._types)}; make them the same"
            )
            raise GraphError(msg)

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {f"{self.name}.{field}": dtype for field, dtype in self._types.items()}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Leave the values as they are: `finish` adds them, group by group."""
        return [values.alias(self._value)]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Lists of the values, or of the accumulators, of a group."""
        if self._value in frame.columns:
            return [pl.col(self._value).drop_nulls().implode()]
        return [pl.col(name).implode() for name in self.columns]

    def finish(self, frame: pl.DataFrame) -> Sequence[pl.Series]:
        """One accumulator per group."""
        if self._value in frame.columns:
            groups: Iterable[Fields] = map(self._added, frame.get_column(self._value).to_list())
        else:
            lists = (frame.get_column(name).to_list() for name in self.columns)
            groups = map(self._merged, *lists)
        found = list(groups)
        return [
            self._column(f"{self.name}.{field}", [fields[field] for fields in found], dtype)
            for field, dtype in self._types.items()
        ]

    def neutral(self) -> Mapping[str, object]:
        """An accumulator of no values; nothing where that is no plain JSON."""
        created = {
            f"{self.name}.{field}": value for field, value in self._function.create().items()
        }
        try:
            json.dumps(created)
        except (TypeError, ValueError):
            return {}
        return created

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""
        rows = zip(*(frame.get_column(name).to_list() for name in self.columns), strict=True)
        made = (dict(zip(self._types, row, strict=True)) for row in rows)
        values = [self._call("result", self._function.result, fields) for fields in made]
        return self._column(self.name, values, self._result_type)

    def _added(self, values: Sequence[Any]) -> Fields:
        fields = self._function.create()
        for value in values:  # rows one by one: that is what the author's function takes
            fields = self._call("add", self._function.add, fields, value)
        return fields

    def _merged(self, *columns: Sequence[Any]) -> Fields:
        rows = zip(*columns, strict=True)
        parts = (dict(zip(self._types, row, strict=True)) for row in rows)
        return reduce(
            lambda one, other: self._call("merge", self._function.merge, one, other), parts
        )

    def _call(self, step: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            shown = ", ".join(repr(arg)[:100] for arg in args)
            what = f"{type(error).__name__}: {error}"
            msg = f"aggregate {self.name!r} failed in {step}({shown}): {what}; fix the function"
            raise FunctionError(msg) from error

    def _column(self, name: str, values: Sequence[Any], dtype: pl.DataType) -> pl.Series:
        try:
            return pl.Series(name, values, dtype=dtype, strict=True)
        except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
            msg = f"aggregate {self.name!r} gives what is not {dtype}: {error}; declare its type"
            raise FunctionError(msg) from error
