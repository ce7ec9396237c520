"""The subtasks of a planned job."""

from __future__ import annotations

from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan


def tasks_of(plan: Plan) -> list[TaskId]:
    """Every subtask of a job."""
    return [
        TaskId(vertex.id, subtask)
        for vertex in plan.vertices
        for subtask in range(vertex.parallelism)
    ]


def sources_of(plan: Plan) -> list[TaskId]:
    """Every subtask whose head is a source."""
    heads = {vertex.id for vertex in plan.sources}
    return [task for task in tasks_of(plan) if task.vertex in heads]
