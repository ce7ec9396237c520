"""From the logical graph to the job graph: which operators share a vertex, and what joins vertices.

    an operator joins the chain of its inputs when
        all of them lie in one vertex, none deals rows out, the parallelism is the same,
        and the author has not said otherwise;
    otherwise it is the head of a vertex of its own, and its inputs are edges.

Order    vertices and operators keep the order of the job file, so ids and plans are stable.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from engine.elements import Micros
from engine.errors import GraphError
from engine.graph.jobgraph import (
    ChainedOperator,
    Feed,
    JobEdge,
    JobGraph,
    JobVertex,
    Partitioning,
)
from engine.graph.logical import Chaining, Input, LogicalGraph, Node
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.state.backends import StateSettings


def build(
    graph: LogicalGraph, checkpoint_interval: Micros | None, state: StateSettings | None = None
) -> JobGraph:
    """Chain the operators of a job. Raises GraphError."""
    if not any(isinstance(node.operator, SourceOperator) for node in graph.nodes):
        msg = f"job {graph.name!r} has no source; begin with env.source(…)"
        raise GraphError(msg)
    if not any(isinstance(node.operator, SinkOperator) for node in graph.nodes):
        msg = f"job {graph.name!r} has no sink: nobody would see its results; end with .sink(…)"
        raise GraphError(msg)
    chains = _Chains(graph)
    for node in graph.nodes:
        chains.place(node)
    return JobGraph(
        name=graph.name,
        max_parallelism=graph.max_parallelism,
        vertices=tuple(_vertex(nodes) for nodes in chains.vertices),
        edges=tuple(chains.edges),
        checkpoint_interval=checkpoint_interval,
        warnings=tuple(_warnings(graph)),
        state=state or StateSettings(),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    vertex: int
    operator: int


class _Chains:
    """The vertices so far, and where each node went."""

    def __init__(self, graph: LogicalGraph) -> None:
        self._graph = graph
        self.vertices: list[list[Node]] = []
        self.edges: list[JobEdge] = []
        self._places: dict[Node, _Place] = {}

    def place(self, node: Node) -> None:
        """Put a node behind its inputs, which have been placed."""
        vertex = self._chain_for(node)
        if vertex is None:
            self.vertices.append([])
            vertex = len(self.vertices) - 1
            self.edges.extend(self._edge(node, source) for source in node.inputs)
        self._places[node] = _Place(vertex, len(self.vertices[vertex]))
        self.vertices[vertex].append(node)

    def _chain_for(self, node: Node) -> int | None:
        vertices = {self._places[source.node].vertex for source in node.inputs}
        stays = all(
            _partitioning(node, source) is Partitioning.FORWARD and self._may_chain(node, source)
            for source in node.inputs
        )
        return vertices.pop() if len(vertices) == 1 and stays else None

    def _may_chain(self, node: Node, source: Input) -> bool:
        before, after = self._graph.chaining_of(source.node), self._graph.chaining_of(node)
        return before is not Chaining.NEVER and after is Chaining.ALWAYS

    def _edge(self, node: Node, source: Input) -> JobEdge:
        place = self._places[source.node]
        return JobEdge(
            source=vertex_id(self.vertices[place.vertex][0].uid),
            operator=place.operator,
            target=vertex_id(node.uid),
            partitioning=_partitioning(node, source),
            port=source.port,
            tag=source.tag,
            keys=source.keys,
        )


def _partitioning(node: Node, source: Input) -> Partitioning:
    if source.keys:
        return Partitioning.HASH
    if source.dealt is not None:
        return source.dealt
    same = source.node.parallelism == node.parallelism
    return Partitioning.FORWARD if same else Partitioning.REBALANCE


def _vertex(nodes: list[Node]) -> JobVertex:
    at = {node: index for index, node in enumerate(nodes)}
    operators = tuple(
        ChainedOperator(
            uid=node.uid,
            name=node.name,
            operator=node.operator,
            feeds=tuple(
                Feed(at[source.node], source.port, source.tag)
                for source in node.inputs
                if source.node in at
            ),
        )
        for node in nodes
    )
    return JobVertex(
        id=vertex_id(nodes[0].uid),
        name=" → ".join(node.name for node in nodes),
        parallelism=nodes[0].parallelism,
        operators=operators,
        watermark_group=_watermark_group(nodes[0]),
    )


def _watermark_group(head: Node) -> str | None:
    strategy = head.operator.watermarks if isinstance(head.operator, SourceOperator) else None
    if strategy is None or strategy.alignment is None:
        return None
    return strategy.alignment.group or f"source {head.uid}"


def vertex_id(head_uid: str) -> str:
    """The id of the vertex that an operator heads: 32 hex digits.

    >>> vertex_id("flights")
    'e0c88d8d3a0b4879065201810cbb3eb7'
    """
    return blake2b(head_uid.encode(), digest_size=16, person=b"vertex").hexdigest()


def _warnings(graph: LogicalGraph) -> list[str]:
    return [
        f"{node.operator.name} {node.uid!r} keeps state under an automatic uid, which changes when "
        "operators are added before it; pass uid=…"
        for node in graph.nodes
        if not node.explicit_uid and _is_stateful(node)
    ]


def _is_stateful(node: Node) -> bool:
    return isinstance(node.operator, SourceOperator | SinkOperator) or bool(node.operator.states)
