"""The wiring of a job: one TaskSpec per subtask, and where each output channel leads.

    edge "a" --hash--> "b", 2 × 3 subtasks: every subtask of "a" has 3 output channels,
    every subtask of "b" has 2 input channels

Order    input channels are numbered by (edge, source subtask), output channels by (edge, target).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import GraphError
from engine.graph.jobgraph import JobEdge, JobGraph, JobVertex, Partitioning, TaskId
from engine.runtime.spec import OutputEdge, TaskSpec
from engine.runtime.watermark_groups import shared_groups


@dataclass(frozen=True, slots=True)
class Wiring:
    """All subtasks of a job and the channels between them."""

    specs: Mapping[TaskId, TaskSpec]
    """In topological order of vertices."""
    routes: Mapping[tuple[TaskId, int], tuple[TaskId, int]]
    """(task, output channel) -> (task, input channel)."""


def wire(graph: JobGraph, job_id: str, attempt_id: str) -> Wiring:
    """Lay out the channels of a job. Raises GraphError."""
    vertices = {vertex.id: vertex for vertex in graph.vertices}
    ports: dict[TaskId, list[int]] = defaultdict(list)
    outputs: dict[TaskId, list[OutputEdge]] = defaultdict(list)
    used: dict[TaskId, int] = defaultdict(int)
    routes: dict[tuple[TaskId, int], tuple[TaskId, int]] = {}
    for edge in graph.edges:
        for source, targets in _pairs(edge, vertices[edge.source], vertices[edge.target]):
            first = used[source]
            for channel, target in enumerate(targets, first):
                routes[source, channel] = target, len(ports[target])
                ports[target].append(edge.port)
            used[source] += len(targets)
            outputs[source].append(OutputEdge(edge, tuple(range(first, used[source]))))
    shared = shared_groups(graph.vertices)
    specs = {
        task: TaskSpec(
            job_id=job_id,
            attempt_id=attempt_id,
            vertex=vertex,
            subtask=task.subtask,
            max_parallelism=graph.max_parallelism,
            inputs=tuple(ports[task]),
            outputs=tuple(outputs[task]),
            keyed=is_keyed(graph, vertex.id),
            state=graph.state,
            watermark_group=vertex.watermark_group if vertex.watermark_group in shared else None,
        )
        for vertex in graph.vertices
        for task in tasks_of(vertex)
    }
    return Wiring(specs, routes)


def tasks_of(vertex: JobVertex) -> list[TaskId]:
    """The subtasks of a vertex."""
    return [TaskId(vertex.id, subtask) for subtask in range(vertex.parallelism)]


def is_keyed(graph: JobGraph, vertex_id: str) -> bool:
    """Whether the rows of a vertex come partitioned by key."""
    edges = (edge for edge in graph.edges if edge.target == vertex_id)
    return any(edge.partitioning is Partitioning.HASH for edge in edges)


def _pairs(
    edge: JobEdge, source: JobVertex, target: JobVertex
) -> list[tuple[TaskId, list[TaskId]]]:
    """Each subtask of the source with the subtasks that it sends to."""
    targets = tasks_of(target)
    if edge.partitioning is Partitioning.RESCALE:
        return [(task, _share(task, source, targets)) for task in tasks_of(source)]
    if edge.partitioning is not Partitioning.FORWARD:
        return [(task, targets) for task in tasks_of(source)]
    if source.parallelism != target.parallelism:
        msg = (
            f"edge from {source.name!r} to {target.name!r} cannot go forward: parallelism "
            f"{source.parallelism} meets {target.parallelism}; use rebalance"
        )
        raise GraphError(msg)
    return [(task, [targets[task.subtask]]) for task in tasks_of(source)]


def _share(task: TaskId, source: JobVertex, targets: list[TaskId]) -> list[TaskId]:
    """The targets next to a subtask: neighbours share the longer side out evenly."""
    first = task.subtask * len(targets) // source.parallelism
    end = (task.subtask + 1) * len(targets) // source.parallelism
    return targets[first : max(end, first + 1)]
