"""Rows of a keyed stream that have one event time, told apart by a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.elements import EVENT_TIME, RESERVED_COLUMNS
from engine.errors import GraphError
from engine.graph.logical import Input
from engine.operators.columns.number_ties import NumberTies
from engine.operators.expressions import Schema
from engine.operators.late import LATE
from engine.stream.record_steps import Options
from engine.stream.stream import Stream

if TYPE_CHECKING:
    from engine.stream.keyed import KeyedStream


def numbered(keyed: KeyedStream, column: str, options: Options) -> Stream:
    """The stream with a column more, and its late rows beside it. Raises GraphError."""
    stream = keyed.stream
    _check(stream.schema, column)
    uid, name, parallelism = options
    operator = NumberTies(stream.schema, keyed.keys, column)
    node = stream.env.add(operator, keyed.partitioned(uid, "key"), uid, name, parallelism)
    late = {LATE: Stream(stream.env, (Input(node, LATE),), stream.schema)}
    return Stream(stream.env, (Input(node),), operator.schema, late)


def _check(schema: Schema, column: str) -> None:
    if EVENT_TIME not in schema:
        msg = (
            "number_ties needs event time, which the stream does not have; pass watermarks=… to "
            "env.source, e.g. bounded_out_of_orderness('1s', 'time')"
        )
        raise GraphError(msg)
    if not isinstance(column, str) or not column.strip():
        msg = f"number_ties needs a name for its column: got {column!r}; pass e.g. 'sequence'"
        raise GraphError(msg)
    if column in {*schema, *RESERVED_COLUMNS}:
        msg = f"number_ties makes column {column!r}, which the stream has; choose another name"
        raise GraphError(msg)
