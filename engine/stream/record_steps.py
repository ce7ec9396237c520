"""Steps of a stream that take one row at a time: what expressions cannot say.

Shapes   rows are dicts, or objects of a dataclass: `rows_as` says so of a stream, `schema=` of what
         a function gives. A field is a column; one that is not Optional cannot be null.
Errors   GraphError, at the line of the job file that is wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from engine.durations import Duration
from engine.elements import EVENT_TIME, RESERVED_COLUMNS
from engine.errors import GraphError
from engine.functions import ProcessFunction
from engine.functions.row_class import RowClass, SchemaLike, check_fits, check_names, row_class
from engine.graph.jobgraph import AnyOperator
from engine.operators.asking.map_async import AsyncFunction, MapAsync
from engine.operators.columns.project import Project
from engine.operators.expressions import Schema
from engine.operators.records.records import FlatMapRows, MapRows
from engine.state.schema import as_type
from engine.stream.asking import checked_asking

if TYPE_CHECKING:
    from engine.stream.stream import Stream

Options = tuple[str | None, str | None, int | None]
"""uid, name and parallelism of a step."""


class Shape(NamedTuple):
    """The rows of a stream."""

    columns: Schema
    row_class: RowClass | None


class RecordSteps(ABC):
    """What a stream can do row by row."""

    schema: dict[str, pl.DataType]
    row_class: RowClass | None
    """The class that its rows are objects of, for functions; None for dicts."""

    @abstractmethod
    def _then(
        self,
        operator: AnyOperator,
        schema: Schema,
        options: Options,
        row_class: RowClass | None = None,
    ) -> Stream:
        """Put an operator behind this stream."""

    def rows_as(self, given: type[Any], *, uid: str | None = None) -> Stream:
        """Give functions the rows as objects of a dataclass. Columns that it has not are left out.

        >>> from dataclasses import dataclass
        >>> from engine.stream import Environment
        >>> from engine.testing.memory import MemorySource
        >>> @dataclass
        ... class Order:
        ...     item: str
        ...     price: float
        >>> rows = pl.DataFrame({"item": ["tea"], "price": [2.5], "n": [1]})
        >>> orders = Environment("orders").source(MemorySource({"all": rows})).rows_as(Order)
        >>> orders, orders.map(lambda order: {"total": 2 * order.price}, schema={"total": float})
        (Stream(item: String, price: Float64), Stream(total: Float64))
        """
        made = row_class(given)
        check_names(made, timed=EVENT_TIME in self.schema)
        check_fits(made, self.schema)
        columns = {name: self.schema[name] for name in made.columns if name != EVENT_TIME}
        times = {EVENT_TIME: pl.Int64()} if EVENT_TIME in self.schema else {}
        operator = Project("rows_as", [], [*columns, *times])
        options = (uid, uid or "rows_as", None)
        return self._then(operator, {**columns, **times}, options, made)

    def map(
        self,
        function: Callable[[Any], object],
        *,
        schema: SchemaLike | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Make one row of each. `schema`: columns of the result, when they differ."""
        return self._rows(MapRows, function, schema, (uid, name, parallelism))

    def flat_map(
        self,
        function: Callable[[Any], object],
        *,
        schema: SchemaLike | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Make any number of rows of each. `schema`: columns of the result, when they differ."""
        return self._rows(FlatMapRows, function, schema, (uid, name, parallelism))

    def map_async(
        self,
        function: AsyncFunction,
        *,
        schema: SchemaLike | None = None,
        capacity: int = 100,
        timeout: Duration | None = None,
        on_timeout: Callable[[Any], object] | None = None,
        ordered: bool = True,
        rows_per_call: int | None = None,
        retries: int = 0,
        retry_after: Duration = 0,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Make rows of each with an `async def`: many rows are asked for at a time.

        >>> from engine.stream import Environment
        >>> from engine.testing.memory import MemorySource
        >>> async def priced(row):
        ...     return row | {"price": 2.5}
        >>> source = MemorySource({"all": pl.DataFrame({"item": ["tea"]})})
        >>> orders = Environment("orders").source(source)
        >>> orders.map_async(priced, schema={"item": str, "price": float}, timeout="1s")
        Stream(item: String, price: Float64)

        The function gives a row, a list of rows, or None. `capacity`: rows in flight in a subtask.
        `timeout`: for an answer, with all its `retries`; then `on_timeout(row)` says what the row
        gives, and without it the job starts again from its last checkpoint. `ordered=False`: rows
        leave as they are answered, but not past a watermark. `rows_per_call`: the function gets a
        list of so many rows at most, and gives a list of what each of them gives. Rows in flight
        are in every snapshot and are asked for again after a restore.
        """
        result = self.shape(schema)
        asking = checked_asking(
            function,
            self.schema,
            capacity=capacity,
            timeout=timeout,
            ordered=ordered,
            rows_per_call=rows_per_call,
            retries=retries,
            retry_after=retry_after,
            on_timeout=on_timeout,
        )
        operator = MapAsync(
            function,
            label_of(function),
            self.schema,
            result.columns,
            asking,
            takes=self.row_class,
            gives=result.row_class,
        )
        options = (uid, name, parallelism)
        # What follows has to wait for its rows, what goes before has not.
        return self._then(operator, result.columns, options, result.row_class).start_new_chain()

    def process(
        self,
        function: ProcessFunction,
        *,
        schema: SchemaLike | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Run a function without state, which may have side outputs. `schema`: columns of its rows,
        when they differ.
        """
        from engine.stream.functions import processed  # it makes streams

        return processed(self, function, self.shape(schema), (uid, name, parallelism))  # type: ignore[arg-type]

    def shape(self, schema: SchemaLike | None) -> Shape:
        """The rows that a function makes: as declared, else those of this stream."""
        if schema is None:
            return Shape(self.schema, self.row_class)
        timed = EVENT_TIME in self.schema
        times = {EVENT_TIME: pl.Int64()} if timed else {}
        if isinstance(schema, type):
            made = row_class(schema)
            check_names(made, timed=timed)
            return Shape({**made.columns, **times}, made)
        reserved = [column for column in schema if column in RESERVED_COLUMNS]
        if reserved:
            msg = f"schema names the reserved column {reserved[0]!r}; leave it out"
            raise GraphError(msg)
        declared = {column: as_type(type_) for column, type_ in schema.items()}
        return Shape({**declared, **times}, None)

    def _rows(
        self,
        kind: type[MapRows | FlatMapRows],
        function: Callable[[Any], object],
        schema: SchemaLike | None,
        options: Options,
    ) -> Stream:
        check_callable(function, kind.name)
        columns, made = self.shape(schema)
        operator = kind(function, label_of(function), columns, takes=self.row_class, gives=made)
        return self._then(operator, columns, options, made)


def check_callable(function: object, step: str) -> None:
    """Refuse what cannot be called. Raises GraphError."""
    if not callable(function):
        msg = f"{step} needs a function of one row: got {function!r}; pass e.g. a lambda"
        raise GraphError(msg)


def label_of(function: object) -> str:
    """What a function is called, for people."""
    return getattr(function, "__name__", type(function).__name__)
