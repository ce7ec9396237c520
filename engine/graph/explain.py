"""A job graph as text: what each operator does, and how operators share threads.

    logical plan      operators in the order of the job file: facts, states, what each takes
    physical plan     vertices: chains of operators with their subtasks, and how rows reach them

Order    that of the job file, so two texts of one job are equal, and those of two versions differ
         where the job does.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.durations import format_duration
from engine.graph.jobgraph import ChainedOperator, JobEdge, JobGraph, JobVertex
from engine.operators.contract import MAIN
from engine.state.contract import StateDescriptor
from engine.state.schema import type_name


def explain(graph: JobGraph) -> str:
    """Describe a job in words, for its author."""
    return "\n".join([*_head(graph), "", *_logical(graph), "", *_physical(graph), *_warned(graph)])


def _head(graph: JobGraph) -> Iterator[str]:
    interval = graph.checkpoint_interval
    often = "only when asked" if interval is None else f"every {format_duration(interval)}"
    yield f"job {graph.name}"
    yield f"  checkpoints {often}; state in {graph.state.kind}"
    yield f"  max parallelism {graph.max_parallelism}"


def _logical(graph: JobGraph) -> Iterator[str]:
    yield "logical plan"
    for vertex in graph.vertices:
        edges = [edge for edge in graph.edges if edge.target == vertex.id]
        for index, chained in enumerate(vertex.operators):
            takes = _over_edges(graph, edges) if index == 0 else _inside(vertex, chained)
            yield f"  {_titled(chained)}{_arrow(', '.join(takes))}"
            yield from (f"      {line}" for line in _facts(chained))


def _physical(graph: JobGraph) -> Iterator[str]:
    subtasks = sum(vertex.parallelism for vertex in graph.vertices)
    chains = _counted(len(graph.vertices), "chain")
    yield f"physical plan: {chains}, {_counted(subtasks, 'subtask')}"
    numbers = {vertex.id: number for number, vertex in enumerate(graph.vertices, 1)}
    for vertex in graph.vertices:
        yield f"  {numbers[vertex.id]}. {_chain(vertex)}  × {vertex.parallelism}"
        for edge in graph.edges:
            if edge.target == vertex.id:
                yield f"      {_dealt(edge)} from {numbers[edge.source]}"


def _warned(graph: JobGraph) -> Iterator[str]:
    if graph.warnings:
        yield ""
    yield from (f"warning: {warning}" for warning in graph.warnings)


def _titled(chained: ChainedOperator) -> str:
    shown = "" if chained.name in (chained.uid, chained.operator.name) else f" ({chained.name})"
    return f"{chained.uid}{shown}: {chained.operator.name}"


def _over_edges(graph: JobGraph, edges: list[JobEdge]) -> list[str]:
    vertices = {vertex.id: vertex for vertex in graph.vertices}
    return [
        f"{_output(vertices[edge.source].operators[edge.operator], edge.tag)} {_dealt(edge)}"
        for edge in edges
    ]


def _inside(vertex: JobVertex, chained: ChainedOperator) -> list[str]:
    return [_output(vertex.operators[feed.operator], feed.tag) for feed in chained.feeds]


def _output(chained: ChainedOperator, tag: str) -> str:
    return chained.uid if tag == MAIN else f"{chained.uid}[{tag}]"


def _dealt(edge: JobEdge) -> str:
    return f"{edge.partitioning}({', '.join(edge.keys)})" if edge.keys else str(edge.partitioning)


def _facts(chained: ChainedOperator) -> Iterator[str]:
    yield from (f"{name}: {fact}" for name, fact in chained.operator.describe().items() if fact)
    yield from (_kept(state) for state in chained.operator.states)


def _kept(state: StateDescriptor) -> str:
    keys = ", ".join(f"{name} {type_name(dtype)}" for name, dtype in state.keys.items())
    return f"keeps {state.name}: {state.kind}{f' by {keys}' if keys else ''}"


def _chain(vertex: JobVertex) -> str:
    return " → ".join(chained.uid for chained in vertex.operators)


def _arrow(takes: str) -> str:
    return f" ← {takes}" if takes else ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
