"""Folds: windows whose result is made row by row, with what an author wrote.

    reduce      two rows ──▶ one row
    aggregate   accumulator, row ──add──▶ accumulator ──result──▶ columns

Order    rows are added in the order of their turns, and the accumulators of sessions that become
         one are merged in the order of their starts: so not even a sum of floats depends on the
         parallelism or the batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import polars as pl

from engine.aggregates import AggregateFunction
from engine.elements import EVENT_TIME, MIN_TIME
from engine.errors import FunctionError, UserError
from engine.operators.expressions import raised, shortened
from engine.state.schema import as_type
from engine.state.values import UNFIT, storing

Row = Mapping[str, Any]
Schema = Mapping[str, pl.DataType]

Folding = tuple[int, dict[str, Any]]
"""The latest event time, and the fields of an accumulator, as a snapshot gives them back."""


class Fold(ABC):
    """How rows become one accumulator, and that a result."""

    columns: Schema
    """Fields of the accumulator."""
    result_types: Schema
    """Columns of the result."""
    step: str
    """The operator, for messages."""

    def seen(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The columns that the author's function sees."""
        return rows

    @abstractmethod
    def added(self, held: Folding | None, row: Row, time: int) -> Folding:
        """With one row more."""

    @abstractmethod
    def merged(self, held: Sequence[Folding]) -> Folding:
        """Of several accumulators, in order."""

    @abstractmethod
    def result(self, held: Folding) -> Row:
        """The columns of the result."""

    def call(self, function: Callable[..., Any], *given: Any) -> Any:
        """What the author's function gives. Raises FunctionError with what it was given."""
        try:
            return function(*given)
        except UserError:
            raise
        except Exception as error:
            shown = ", ".join(shortened(each, 120) for each in given)
            msg = f"{self.step} {raised(error)}: given {shown}; fix the function"
            raise FunctionError(msg) from error

    @cached_property
    def _storing(self) -> Mapping[str, Callable[[Any], Any]]:
        return {name: storing(dtype) for name, dtype in self.columns.items()}

    def stored(self, fields: Any) -> dict[str, Any]:
        """The fields, as a snapshot would give them back. Raises FunctionError."""
        if not isinstance(fields, Mapping) or not fields.keys() <= self.columns.keys():
            msg = (
                f"{self.step} gave {shortened(fields)}, which are not the fields "
                f"{', '.join(self.columns)}; give a dict of them"
            )
            raise FunctionError(msg)
        name, made = "", {}
        try:
            for name, store in self._storing.items():
                made[name] = store(fields.get(name))
        except UNFIT as error:
            given = f"{name} = {shortened(fields.get(name))}"
            msg = f"{self.step} gave {given}, which is not {self.columns[name]}; convert it"
            raise FunctionError(msg) from error
        return made


class Reduced(Fold):
    """Two rows to one, of the same columns."""

    def __init__(
        self, function: Callable[..., Row], label: str, keys: Schema, schema: Schema
    ) -> None:
        self.function = function
        self.step = f"reduce {label!r}"
        self.columns = {
            name: dtype for name, dtype in schema.items() if name not in (*keys, EVENT_TIME)
        }
        self.result_types = self.columns

    def seen(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows without their keys, which are the same for all."""
        return rows.select(list(self.columns))

    def added(self, held: Folding | None, row: Row, time: int) -> Folding:
        """The first row, or a new one of both."""
        if held is None:
            return time, dict(row)
        made = self.call(self.function, held[1], row)
        return max(held[0], time), self.stored(made)

    def merged(self, held: Sequence[Folding]) -> Folding:
        """One row of several."""
        return reduce(lambda one, other: self.added(one, other[1], other[0]), held)

    def result(self, held: Folding) -> Row:
        """The row."""
        return held[1]


class Aggregated(Fold):
    """With a function that adds, merges and gives a result."""

    def __init__(self, function: AggregateFunction, label: str, result_types: Schema) -> None:
        """`result_types`: one column of the function's result, or the columns of its dicts."""
        self.function = function
        self.step = f"aggregate {label!r}"
        self.columns = {name: as_type(dtype) for name, dtype in function.fields.items()}
        self.result_types = dict(result_types)

    def added(self, held: Folding | None, row: Row, time: int) -> Folding:
        """With one row more."""
        fields = self.call(self.function.create) if held is None else held[1]
        made = self.call(self.function.add, fields, row)
        return time if held is None else max(held[0], time), self.stored(made)

    def merged(self, held: Sequence[Folding]) -> Folding:
        """One accumulator of several."""

        def both(one: Folding, other: Folding) -> Folding:
            made = self.call(self.function.merge, one[1], other[1])
            return max(one[0], other[0]), self.stored(made)

        return reduce(both, held)

    def result(self, held: Folding) -> Row:
        """The columns of the result."""
        made = self.call(self.function.result, dict(held[1]))
        if isinstance(made, Mapping):
            unknown = [name for name in made if name not in self.result_types]
            if not unknown:
                return made
            msg = (
                f"{self.step} gave unknown columns {', '.join(map(str, unknown))}: promised "
                f"{', '.join(self.result_types)}; correct the function, or pass schema={{…}}"
            )
            raise FunctionError(msg)
        if len(self.result_types) > 1:
            msg = f"{self.step} gave {shortened(made)}; give a dict of its columns"
            raise FunctionError(msg)
        return {next(iter(self.result_types)): made}


def times_of(rows: pl.DataFrame) -> Sequence[int]:
    """The event times of rows; without event time all have the same."""
    if EVENT_TIME not in rows.columns:
        return [MIN_TIME] * rows.height
    times: list[int] = rows.get_column(EVENT_TIME).to_list()
    return times
