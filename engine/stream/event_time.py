"""Event time behind the first steps of a source: `stream.assign_timestamps_and_watermarks(…)`.

    source ─▶ map(parse) ─▶ filter ─▶ assign   becomes   source with its steps, and watermarks

Errors   GraphError where rows of several splits may have met: their order says nothing any more,
         and what is late would depend on speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from engine.elements import EVENT_TIME
from engine.errors import GraphError
from engine.graph.logical import Input, Node
from engine.operators.contract import MAIN, Operator
from engine.operators.sources.source import SourceOperator
from engine.operators.sources.source_steps import ROW_STEPS, SteppedSource
from engine.watermarks import WatermarkStrategy, check_event_time

if TYPE_CHECKING:
    from engine.stream.stream import Stream

WHAT_TO_DO = "assign them directly behind the source, or behind row-wise steps of its parallelism"


def with_event_time(stream: Stream, strategy: WatermarkStrategy) -> Stream:
    """The stream with event time of `strategy`. Raises GraphError."""
    from engine.stream.stream import Stream  # the stream calls us

    source, *steps = _nodes(stream)
    check_event_time(stream.schema, strategy.column, f"{steps[-1].uid if steps else source.uid!r}")
    operator = source.operator
    assert isinstance(operator, SourceOperator)
    read = operator.source
    if steps:
        operators = [step.operator for step in steps if isinstance(step.operator, Operator)]
        read = SteppedSource(read, operators, stream.schema)
    node = stream.env.replace((source, *steps), SourceOperator(read, strategy))
    schema = {**stream.schema, EVENT_TIME: pl.Int64()}
    return Stream(stream.env, (Input(node),), schema, row_class=stream.row_class)


def _nodes(stream: Stream) -> list[Node]:
    """The source and its steps, from first to last. Raises GraphError."""
    inputs, nodes = stream.outputs, list[Node]()
    while inputs:
        node = _only(inputs)
        nodes.insert(0, node)
        if isinstance(node.operator, SourceOperator):
            break
        if not isinstance(node.operator, ROW_STEPS):
            why = f"{node.operator.name} {node.uid!r} is no step of one row at a time"
            raise _refused(why)
        inputs = node.inputs
    source = nodes[0]
    assert isinstance(source.operator, SourceOperator)
    if source.operator.watermarks is not None:
        why = f"source {source.uid!r} has watermarks of its own"
        raise _refused(why)
    for node in nodes:
        if node.parallelism != source.parallelism:
            why = f"{node.uid!r} has another parallelism than source {source.uid!r}"
            raise _refused(why)
    return nodes


def _only(inputs: tuple[Input, ...]) -> Node:
    if len(inputs) > 1:
        uids = ", ".join(repr(each.node.uid) for each in inputs)
        why = f"rows of {uids} have met"
        raise _refused(why)
    [source] = inputs
    if source.keys or source.dealt is not None or source.tag != MAIN:
        why = f"rows of {source.node.uid!r} were dealt out, or put aside"
        raise _refused(why)
    return source.node


def _refused(why: str) -> GraphError:
    return GraphError(f"timestamps and watermarks cannot be assigned here: {why}; {WHAT_TO_DO}")
