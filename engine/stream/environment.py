"""The environment: where a job begins and what all its operators share.

>>> from engine.stream import Environment
>>> env = Environment("sensors")
>>> env.name, env.parallelism, env.max_parallelism
('sensors', 1, 128)
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import polars as pl

from engine.connectors.contract import Sink, Source
from engine.connectors.discard import DiscardSink
from engine.elements import EVENT_TIME, MAX_TIME, RESERVED_COLUMNS
from engine.errors import GraphError
from engine.graph.builder import build
from engine.graph.explain import explain
from engine.graph.jobgraph import AnyOperator, JobGraph
from engine.graph.logical import Chaining, Input, LogicalGraph, Node
from engine.keygroups import DEFAULT_MAX_PARALLELISM, MAX_MAX_PARALLELISM
from engine.operators.contract import Operator
from engine.operators.expressions import Schema
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.state.backends import StateSettings, backend_kind
from engine.stream.recording import (
    Recording,
    current_recording,
    environment_settings,
    interval_of,
)
from engine.stream.stream import Stream
from engine.watermarks import WatermarkStrategy, check_event_time

EMBEDDED = "engine.cli.embedded"
"""What runs a job that nobody submits. It builds on all the rest, so it is loaded when needed."""


class Environment:
    """One job. Settings given when a job is submitted win over the ones given here."""

    def __init__(
        self,
        name: str,
        *,
        checkpoint_interval: str | int | None = "1s",
        parallelism: int = 1,
        max_parallelism: int = DEFAULT_MAX_PARALLELISM,
        state_backend: str = "memory",
        state_memory: str | int | None = None,
    ) -> None:
        """Begin a job.

        `checkpoint_interval`: a length of time (a number is µs); None for none.
        `state_backend`: memory, or rocksdb for keyed state that is larger.
        `state_memory`: what RocksDB may take for each subtask of an operator, e.g. "64mb".
        """
        if not name.strip():
            msg = f"job name is empty: got {name!r}; pass e.g. Environment('sensors')"
            raise GraphError(msg)
        recording = current_recording() or Recording(environment_settings())
        checkpoint_interval = recording.checkpoint_interval() or checkpoint_interval
        parallelism = recording.parallelism() or parallelism
        max_parallelism = recording.max_parallelism() or max_parallelism
        state_backend = recording.state_backend() or state_backend
        if not 1 <= max_parallelism <= MAX_MAX_PARALLELISM:
            msg = (
                f"max_parallelism is out of range: got {max_parallelism}; "
                f"pass 1 to {MAX_MAX_PARALLELISM}"
            )
            raise GraphError(msg)
        self.name = name
        self.parallelism = parallelism
        self.max_parallelism = max_parallelism
        self._interval = interval_of(checkpoint_interval)
        folder, budget = recording.rocksdb_folder(), recording.state_budget(state_memory)
        self._state = StateSettings(backend_kind(state_backend), folder, budget)
        self._shadow, self._discards = recording.shadow(), recording.discards()
        self._span = recording.span()
        self._graph = LogicalGraph(name, max_parallelism)

    def source(
        self,
        source: Source,
        *,
        uid: str | None = None,
        name: str | None = None,
        watermarks: WatermarkStrategy | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Read a source. With `watermarks` the stream has event time, and may be windowed."""
        if not isinstance(source, Source):
            msg = f"source needs a connector: got {source!r}; pass e.g. FrameSource(frame)"
            raise GraphError(msg)
        schema = dict(source.schema)
        subject = uid or type(source).__name__
        for column in RESERVED_COLUMNS:
            if column in schema:
                msg = f"source {subject!r} has the reserved column {column!r}; rename it"
                raise GraphError(msg)
        if watermarks is not None:
            check_event_time(schema, watermarks.column, f"source {subject!r}")
            schema[EVENT_TIME] = pl.Int64()
        operator = SourceOperator(source, watermarks)
        node = self.add(operator, (), uid, name, parallelism)
        return Stream(self, (Input(node),), schema)

    def graph(self) -> JobGraph:
        """The job graph as it is now. Raises GraphError."""
        if not self._span.is_everything:
            self._limit()
        return build(self._graph, self._interval, self._state)

    def explain(self) -> str:
        """The logical and the physical plan of the job as it is now, as text. Raises GraphError."""
        return explain(self.graph())

    def execute(self) -> None:
        """Hand the job over: every job file ends with this. Raises GraphError.

        When the file was not submitted but started as a program, the job runs in an embedded
        cluster until it ends; SystemExit is raised unless it has finished.
        """
        graph = self.graph()
        recording = current_recording()
        if recording is not None:
            recording.graphs.append(graph)
        else:
            import_module(EMBEDDED).run_program(graph, environment_settings())

    def add(
        self,
        operator: AnyOperator,
        inputs: tuple[Input, ...],
        uid: str | None,
        name: str | None,
        parallelism: int | None,
    ) -> Node:
        """Put an operator into the graph: what every step of a stream comes down to."""
        wanted = self.parallelism if parallelism is None else parallelism
        return self._graph.add(operator, inputs, wanted, uid, name)

    def disable_chaining(self) -> None:
        """Have every step run in a thread of its own, to see which one is slow."""
        self._graph.chaining = Chaining.NEVER

    def set_chaining(self, node: Node, chaining: Chaining) -> None:
        """Say which neighbours an operator may share a thread with: what streams use."""
        self._graph.set_chaining(node, chaining)

    def replace(self, nodes: tuple[Node, ...], operator: SourceOperator) -> Node:
        """Put one source in the place of a source and steps behind it. Raises GraphError."""
        return self._graph.replace(nodes, operator)

    def sink_operator(self, sink: Sink, schema: Schema) -> SinkOperator:
        """The operator of a sink: beside its target when the job is a replay. Raises GraphError."""
        if not self._span.is_everything and EVENT_TIME not in schema:
            msg = (
                f"sink {sink.describe()} has rows without event time: the job writes only "
                f"{self._span.describe()}; give the stream watermarks, or the job no such setting"
            )
            raise GraphError(msg)
        if self._discards:
            sink = DiscardSink(sink)
        return SinkOperator(sink if self._shadow is None else sink.shadow(self._shadow))

    def _limit(self) -> None:
        """Have sinks write what the span has, and sources read until it is complete."""
        operators = [node.operator for node in self._graph.nodes]
        late = sum(one.allowed_lateness for one in operators if isinstance(one, Operator))
        span = replace(self._span, lateness=late)
        for operator in operators:
            if isinstance(operator, SinkOperator):
                operator.span = span
            elif isinstance(operator, SourceOperator) and span.until != MAX_TIME:
                operator.until = span.end_of_input()
