"""Streams: every step gives a new stream; nothing runs before the job is submitted.

Shapes   a stream knows the names and types of its columns, so each step is checked when it is
         written. `event_time` (Int64, µs) is there when the source has watermarks; it may be read
         but not changed, and no step drops it.
Errors   GraphError, at the line of the job file that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from engine.connectors.contract import Sink
from engine.durations import Duration
from engine.elements import EVENT_TIME, RESERVED_COLUMNS
from engine.errors import GraphError
from engine.functions.row_class import RowClass, SchemaLike
from engine.graph.jobgraph import AnyOperator
from engine.graph.logical import Input
from engine.keygroups import check_keys
from engine.operators.columns.explode import Explode
from engine.operators.columns.filter import Filter
from engine.operators.columns.map_batches import FrameFunction, MapBatches
from engine.operators.columns.project import Project
from engine.operators.columns.split import Split
from engine.operators.expressions import Schema, check_columns, infer, user_columns
from engine.operators.records.records import FilterRows
from engine.state.schema import TypeLike
from engine.stream.column_checks import check_predicate, check_sides, exploded, renamed, tried
from engine.stream.join_checks import check_one_job
from engine.stream.lookup import Table, checked_lookup
from engine.stream.placement import Placement
from engine.stream.record_steps import Options, RecordSteps, check_callable, label_of
from engine.watermarks import WatermarkStrategy

if TYPE_CHECKING:
    from engine.stream.broadcast import BroadcastStream
    from engine.stream.environment import Environment
    from engine.stream.keyed import KeyedStream

Row = dict[str, Any]


class Stream(RecordSteps, Placement):
    """Rows that flow through the job."""

    def __init__(
        self,
        env: Environment,
        outputs: tuple[Input, ...],
        schema: Schema,
        sides: Mapping[str, Stream] | None = None,
        row_class: RowClass | None = None,
    ) -> None:
        """Made by the steps of other streams. Several outputs: a union."""
        self.env = env
        self.outputs = outputs
        self.schema = dict(schema)
        self.row_class = row_class
        self._sides = dict(sides or {})

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {dtype}" for name, dtype in self.schema.items())
        return f"Stream({columns})"

    def select(
        self,
        *columns: str | pl.Expr,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        **named: pl.Expr,
    ) -> Stream:
        """Keep these columns and expressions, and nothing else but `event_time`."""
        expressions = _expressions(columns, named)
        made = infer(self.schema, expressions, "select")
        keep = [column for column in made if column != EVENT_TIME]
        return self._project("select", expressions, keep, made, (uid, name, parallelism))

    def with_columns(
        self,
        *columns: pl.Expr,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        **named: pl.Expr,
    ) -> Stream:
        """Add or replace columns."""
        expressions = _expressions(columns, named)
        made = infer(self.schema, expressions, "with_columns")
        keep = list(dict.fromkeys([*user_columns(self.schema), *user_columns(made)]))
        return self._project("with_columns", expressions, keep, made, (uid, name, parallelism))

    def rename(
        self,
        names: Mapping[str, str],
        *,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Give columns other names."""
        keep = renamed(self.schema, names)
        expressions = [pl.col(before).alias(after) for before, after in names.items()]
        made = infer(self.schema, expressions, "rename")
        return self._project("rename", expressions, keep, made, (uid, name, parallelism))

    def drop(
        self,
        *columns: str,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Leave columns out."""
        check_columns(self.schema, columns, "drop")
        reserved = [column for column in columns if column in RESERVED_COLUMNS]
        if reserved:
            msg = f"drop names the reserved column {reserved[0]!r}; event time always stays"
            raise GraphError(msg)
        keep = [column for column in user_columns(self.schema) if column not in columns]
        return self._project("drop", [], keep, {}, (uid, name, parallelism))

    def filter(
        self,
        predicate: pl.Expr | Callable[[Row], object],
        *,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Keep the rows for which an expression, or a function of the row, is true."""
        options = (uid, name, parallelism)
        if not isinstance(predicate, pl.Expr):
            check_callable(predicate, "filter")
            label = label_of(predicate)
            operator = FilterRows(predicate, label, self.schema, takes=self.row_class)
            return self._then(operator, self.schema, options, self.row_class)
        check_predicate(self.schema, predicate, "filter")
        return self._then(Filter(predicate), self.schema, options, self.row_class)

    def split(
        self,
        sides: Mapping[str, pl.Expr],
        *,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Send each row to the side output of the first predicate it meets; go on with the rest.

        `sides`: predicates by the name of their side output, tried in order.
        """
        check_sides(self.schema, sides)
        rest = self._then(Split(sides), self.schema, (uid, name, parallelism), self.row_class)
        (output,) = rest.outputs
        rest._sides = {
            tag: Stream(
                self.env, (replace(output, tag=tag),), self.schema, row_class=self.row_class
            )
            for tag in sides
        }
        return rest

    def explode(
        self,
        *columns: str,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Make one row per element of a list; an empty list gives none, a null a row with null.

        Several lists are taken apart side by side: in each row they must be equally long.
        """
        schema = exploded(self.schema, columns)
        return self._then(Explode(columns), schema, (uid, name, parallelism))

    def map_batches(
        self,
        function: FrameFunction,
        *,
        schema: SchemaLike | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Apply a function from frame to frame. Its result for a row must depend on that row only.

        Use it to score a model, or to say in SQL what is done with a row. Without `schema` the
        function is tried on an empty frame.
        """
        label, given = label_of(function), self.schema
        result = tried(given, function, label) if schema is None else self.shape(schema).columns
        operator = MapBatches(function, label, result)
        return self._then(operator, result, (uid, name, parallelism))

    def lookup_join(
        self,
        table: Table,
        *,
        on: str | Sequence[str] | Mapping[str, str],
        every: Duration,
        how: str = "inner",
        schema: Mapping[str, TypeLike] | None = None,
        suffix: str | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Join rows with a table: a file (.parquet, .csv) or a function that gives a frame.

        It is read at the start and whenever the clock passes a multiple of `every`, so what a row
        meets depends on when it comes; `temporal_join` with a stream of versions does not. `on`:
        columns of both, or {column of the stream: of the table}. `how`: inner, or left to keep rows
        that meet nothing. `schema`: columns that a function gives, else it is called to find out.
        Raises GraphError.

        >>> import engine as hw
        >>> from engine.connectors.generator import SensorGenerator
        >>> def rooms():
        ...     return pl.DataFrame({"sensor": ["door"], "room": ["hall"]})
        >>> rows = hw.Environment("sensors").source(SensorGenerator(rate=1))
        >>> list(rows.lookup_join(rooms, on="sensor", every="10m").schema)
        ['sensor', 'time', 'value', 'room']
        """
        operator, result = checked_lookup(self.schema, table, on, every, how, schema, suffix)
        return self._then(operator, result, (uid, name, parallelism))

    def union(self, *others: Stream) -> Stream:
        """All rows of several streams with the same columns, in no particular order."""
        for other in others:
            check_one_job("union", self, other)
            if other.schema != self.schema:
                msg = f"union needs equal columns: got {self} and {other}; select them alike first"
                raise GraphError(msg)
        outputs = [*self.outputs, *(output for other in others for output in other.outputs)]
        alike = all(other.row_class == self.row_class for other in others)
        made = self.row_class if alike else None
        return Stream(self.env, tuple(outputs), self.schema, row_class=made)

    def assign_timestamps_and_watermarks(self, strategy: WatermarkStrategy) -> Stream:
        """Have event time from a column that the first steps behind a source make.

        They become part of the source: use the stream that this gives for everything that follows.
        """
        from engine.stream.event_time import with_event_time  # see key_by

        return with_event_time(self, strategy)

    def key_by(self, *keys: str) -> KeyedStream:
        """Bring all rows of a key together, for windows and functions with state."""
        from engine.stream.keyed import KeyedStream  # the two kinds of stream make each other

        check_keys({name: self.schema[name] for name in user_columns(self.schema)}, keys)
        return KeyedStream(self, keys)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what is missing, where somebody forgot `key_by`."""
            from engine.stream.keyed import KeyedStream  # see key_by

            msg = f"a stream has no {name!r}"
            if not name.startswith("_") and hasattr(KeyedStream, name):
                msg = f"{name} needs a key, which the stream does not have; call .key_by(…) first"
            raise AttributeError(msg)

    def broadcast(self) -> BroadcastStream:
        """Send every row to all subtasks of the next step: `keyed.connect(stream.broadcast())`."""
        from engine.stream.broadcast import BroadcastStream  # see key_by

        return BroadcastStream(self)

    def side_output(self, tag: str) -> Stream:
        """What the last step sent aside, e.g. the rows that came too late for their window."""
        if tag not in self._sides:
            known = ", ".join(map(repr, self._sides)) or "none"
            msg = f"stream has no side output {tag!r}: it has {known}; ask the step that makes it"
            raise GraphError(msg)
        return self._sides[tag]

    def sink(
        self,
        sink: Sink,
        *,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        chained: bool = True,
    ) -> Stream:
        """Write the rows; gives this stream again, so that a job can go on with it.

        `chained`: False has the sink run in a thread of its own.
        """
        if not isinstance(sink, Sink):
            msg = f"sink needs a connector: got {sink!r}; pass e.g. PrintSink()"
            raise GraphError(msg)
        sink.check(self.schema)
        end = self._then(self.env.sink_operator(sink, self.schema), {}, (uid, name, parallelism))
        if not chained:
            end.disable_chaining()
        return self

    def _project(
        self,
        step: str,
        expressions: list[pl.Expr],
        keep: list[str],
        made: Schema,
        options: Options,
    ) -> Stream:
        times = [EVENT_TIME] if EVENT_TIME in self.schema else []
        if not keep and not times:
            msg = f"{step} leaves no column, so no rows would be left: keep at least one"
            raise GraphError(msg)
        known = {**self.schema, **made}
        operator = Project(step, expressions, [*keep, *times])
        uid, name, parallelism = options
        schema = {column: known[column] for column in operator.columns}
        return self._then(operator, schema, (uid, name or uid or step, parallelism))

    def _then(
        self,
        operator: AnyOperator,
        schema: Schema,
        options: Options,
        row_class: RowClass | None = None,
    ) -> Stream:
        uid, name, parallelism = options
        node = self.env.add(operator, self.outputs, uid, name, parallelism)
        return Stream(self.env, (Input(node),), schema, row_class=row_class)


def _expressions(columns: tuple[str | pl.Expr, ...], named: Mapping[str, pl.Expr]) -> list[pl.Expr]:
    plain = [pl.col(column) if isinstance(column, str) else column for column in columns]
    return [*plain, *(_literal(value).alias(name) for name, value in named.items())]


def _literal(value: object) -> pl.Expr:
    return value if isinstance(value, pl.Expr) else pl.lit(value)
