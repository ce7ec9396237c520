"""The plan: a job graph as plain JSON, for everything that must not run user code.

    JobGraph --plan_of--> Plan <--to_json / from_json--> plan.json beside the pickled graph

Shapes   the hash covers what a snapshot depends on: uids, kinds, states, edges. Parallelism,
         settings and descriptions are not in it, so a rescaled job keeps its hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any

from engine.errors import ConfigError
from engine.graph.jobgraph import AnyOperator, ChainedOperator, JobEdge, JobGraph, JobVertex
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.state.contract import StateDescriptor
from engine.state.schema import type_name

FORMAT_VERSION = 1


class OperatorKind(StrEnum):
    """Where an operator stands in the flow."""

    SOURCE = "source"
    TRANSFORM = "transform"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class StatePlan:
    """A state that an operator keeps; types as `state.schema` writes them."""

    name: str
    kind: str
    keys: Mapping[str, str]
    values: Mapping[str, str]
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Of value columns that may be added: what rows of an older snapshot have there."""

    @property
    def shape(self) -> Mapping[str, object]:
        """What of it decides whether a snapshot fits without a look."""
        return {
            "name": self.name,
            "kind": self.kind,
            "keys": dict(self.keys),
            "values": dict(self.values),
        }


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """One operator of a chain."""

    uid: str
    name: str
    kind: OperatorKind
    type: str
    """Kind of operator: "filter", "window_aggregate" …"""
    description: Mapping[str, str] = field(default_factory=dict)
    states: tuple[StatePlan, ...] = ()


@dataclass(frozen=True, slots=True)
class VertexPlan:
    """A chain of operators."""

    id: str
    name: str
    parallelism: int
    operators: tuple[OperatorPlan, ...]
    watermark_group: str | None = None
    """Sources that wait for each other have the same one."""


@dataclass(frozen=True, slots=True)
class EdgePlan:
    """Rows that one vertex sends to another."""

    source: str
    target: str
    partitioning: str
    operator: int
    """Index, in the source vertex, of the operator that sends."""
    port: int = 0
    tag: str = "main"
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole job, for those who look at it."""

    name: str
    max_parallelism: int
    checkpoint_interval_ms: int | None
    vertices: tuple[VertexPlan, ...]
    edges: tuple[EdgePlan, ...]
    warnings: tuple[str, ...] = ()
    state_backend: str = "memory"

    @property
    def hash(self) -> str:
        """64 hex digits: the same when snapshots of one job fit the other without a look."""
        shape = {
            "max_parallelism": self.max_parallelism,
            "operators": [
                [
                    operator.uid,
                    operator.kind,
                    operator.type,
                    [state.shape for state in operator.states],
                ]
                for vertex in self.vertices
                for operator in vertex.operators
            ],
            "edges": [asdict(edge) for edge in self.edges],
        }
        return sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()

    @property
    def operators(self) -> tuple[OperatorPlan, ...]:
        """All operators, in topological order."""
        return tuple(operator for vertex in self.vertices for operator in vertex.operators)

    @property
    def slots(self) -> int:
        """Workers that it needs: each has one subtask of every vertex, as long as there are any."""
        return max((vertex.parallelism for vertex in self.vertices), default=0)

    @property
    def sources(self) -> tuple[VertexPlan, ...]:
        """The vertices that read."""
        return tuple(v for v in self.vertices if v.operators[0].kind is OperatorKind.SOURCE)

    def to_json(self) -> str:
        """Write the plan."""
        written = {"format_version": FORMAT_VERSION, "hash": self.hash, **asdict(self)}
        return json.dumps(written, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan that `to_json` wrote. Raises ConfigError."""
        try:
            return _plan(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            msg = f"plan cannot be read: {error!r}; submit the job file again"
            raise ConfigError(msg) from error


def plan_of(graph: JobGraph) -> Plan:
    """Describe a job graph."""
    interval = graph.checkpoint_interval
    return Plan(
        name=graph.name,
        max_parallelism=graph.max_parallelism,
        checkpoint_interval_ms=None if interval is None else interval // 1_000,
        vertices=tuple(_vertex_plan(vertex) for vertex in graph.vertices),
        edges=tuple(_edge_plan(edge) for edge in graph.edges),
        warnings=graph.warnings,
        state_backend=graph.state.kind.value,
    )


def _vertex_plan(vertex: JobVertex) -> VertexPlan:
    operators = tuple(_operator_plan(chained) for chained in vertex.operators)
    return VertexPlan(vertex.id, vertex.name, vertex.parallelism, operators, vertex.watermark_group)


def _operator_plan(chained: ChainedOperator) -> OperatorPlan:
    operator = chained.operator
    return OperatorPlan(
        uid=chained.uid,
        name=chained.name,
        kind=_kind(operator),
        type=operator.name,
        description=dict(operator.describe()),
        states=tuple(_state_plan(descriptor) for descriptor in operator.states),
    )


def _kind(operator: AnyOperator) -> OperatorKind:
    match operator:
        case SourceOperator():
            return OperatorKind.SOURCE
        case SinkOperator():
            return OperatorKind.SINK
        case _:
            return OperatorKind.TRANSFORM


def _state_plan(descriptor: StateDescriptor) -> StatePlan:
    keys = {name: type_name(dtype) for name, dtype in descriptor.keys.items()}
    values = {name: type_name(dtype) for name, dtype in descriptor.values.items()}
    return StatePlan(
        descriptor.name, descriptor.kind.value, keys, values, dict(descriptor.defaults)
    )


def _edge_plan(edge: JobEdge) -> EdgePlan:
    return EdgePlan(
        source=edge.source,
        target=edge.target,
        partitioning=edge.partitioning.value,
        operator=edge.operator,
        port=edge.port,
        tag=edge.tag,
        keys=edge.keys,
    )


def _plan(read: Mapping[str, Any]) -> Plan:
    if read["format_version"] != FORMAT_VERSION:
        found = read["format_version"]
        msg = f"plan has another format: got {found}, known is {FORMAT_VERSION}"
        raise ValueError(msg)
    return Plan(
        name=read["name"],
        max_parallelism=read["max_parallelism"],
        checkpoint_interval_ms=read["checkpoint_interval_ms"],
        vertices=tuple(_vertex_read(vertex) for vertex in read["vertices"]),
        edges=tuple(EdgePlan(**{**edge, "keys": tuple(edge["keys"])}) for edge in read["edges"]),
        warnings=tuple(read["warnings"]),
        state_backend=read.get("state_backend", "memory"),
    )


def _vertex_read(read: Mapping[str, Any]) -> VertexPlan:
    operators = tuple(
        OperatorPlan(
            **{
                **operator,
                "kind": OperatorKind(operator["kind"]),
                "states": tuple(StatePlan(**state) for state in operator["states"]),
            }
        )
        for operator in read["operators"]
    )
    return VertexPlan(
        read["id"], read["name"], read["parallelism"], operators, read.get("watermark_group")
    )
