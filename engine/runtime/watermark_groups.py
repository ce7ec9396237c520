"""Watermark groups: which source subtasks wait for each other, and how far the slowest of each is.

    source subtask ──report──▶ group, on the job manager ──Aligned, when the lowest changes──▶ all

Order    until every member has reported, the lowest is MIN_TIME: nobody runs ahead of the unknown.
         A member that holds nobody up (it has ended, or is silent) reports MAX_TIME.
Source   FLIP-182, the coordinator's half of watermark alignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.elements import MIN_TIME, Micros
from engine.graph.jobgraph import TaskId


class AlignedVertex(Protocol):
    """What a vertex of a graph, or of a plan, says about alignment."""

    @property
    def id(self) -> str:
        """Which vertex."""

    @property
    def parallelism(self) -> int:
        """Its number of subtasks."""

    @property
    def watermark_group(self) -> str | None:
        """The group of its source; None for other vertices, and for sources that never wait."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """News for the members of a group."""

    group: str
    lowest: Micros


def shared_groups(vertices: Iterable[AlignedVertex]) -> Mapping[str, Sequence[TaskId]]:
    """The groups that have more than one subtask: one alone needs nobody to be told."""
    members: dict[str, list[TaskId]] = {}
    for vertex in vertices:
        if vertex.watermark_group is not None:
            tasks = [TaskId(vertex.id, subtask) for subtask in range(vertex.parallelism)]
            members.setdefault(vertex.watermark_group, []).extend(tasks)
    return {group: tasks for group, tasks in members.items() if len(tasks) > 1}


class WatermarkGroups:
    """The groups of one attempt of a job."""

    def __init__(self, vertices: Iterable[AlignedVertex]) -> None:
        self._reported: dict[str, dict[TaskId, Micros]] = {}
        self._group: dict[TaskId, str] = {}
        for group, tasks in shared_groups(vertices).items():
            self._reported[group] = dict.fromkeys(tasks, MIN_TIME)
            self._group |= dict.fromkeys(tasks, group)

    def report(self, task: TaskId, watermark: Micros) -> Aligned | None:
        """Take what a subtask reports; say what its group has to hear."""
        group = self._group[task]
        reported = self._reported[group]
        before = min(reported.values())
        reported[task] = watermark
        lowest = min(reported.values())
        return Aligned(group, lowest) if lowest != before else None
