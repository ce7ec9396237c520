"""Answers about one vertex of a job."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from engine.rest.model.jobs import TaskStatus
from engine.rest.schema.jobs import TaskFigures

Subtask = TypedDict(
    "Subtask",
    {
        "subtask": int,
        "status": TaskStatus,
        "attempt": int,
        "endpoint": str,
        "start-time": int,
        "start_time": int,
        "end-time": int,
        "duration": int,
        "metrics": TaskFigures,
        "taskmanager-id": str,
        "status-duration": dict[str, int],
    },
)


class Spread(TypedDict):
    """A figure over subtasks."""

    min: float
    max: float
    avg: float
    sum: float
    p25: float
    median: float
    p75: float
    p95: float


Spreads = TypedDict("Spreads", {"metrics": dict[str, Spread], "status-duration": dict[str, Spread]})


class Vertex(TypedDict):
    """A vertex with its subtasks."""

    id: str
    name: str
    parallelism: int
    maxParallelism: int
    now: int
    subtasks: list[Subtask]
    aggregated: Spreads


VertexOnTaskManager = TypedDict(
    "VertexOnTaskManager",
    {
        "endpoint": str,
        "taskmanager-id": str,
        "status": TaskStatus,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "metrics": TaskFigures,
        "status-counts": dict[TaskStatus, int],
        "aggregated": Spreads,
    },
)


class VertexByTaskManagers(TypedDict):
    """A vertex by task managers."""

    id: str
    name: str
    now: int
    taskmanagers: list[VertexOnTaskManager]


SubtaskLoad = TypedDict(
    "SubtaskLoad",
    {
        "subtask": int,
        "attempt-number": NotRequired[int],
        "backpressureLevel": str,
        "backpressure-level": str,
        "ratio": float,
        "idleRatio": float,
        "busyRatio": float,
    },
)

Backpressure = TypedDict(
    "Backpressure",
    {
        "status": str,
        "backpressureLevel": NotRequired[str],
        "backpressure-level": NotRequired[str],
        "end-timestamp": NotRequired[int],
        "subtasks": NotRequired[list[SubtaskLoad]],
    },
)
