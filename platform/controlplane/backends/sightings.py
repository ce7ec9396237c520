"""What a look at an engine shows: values without behaviour, for the collector.

    EngineSighting        version, task managers, slots, states of all jobs
     └─ JobSighting       one job: vertices, checkpoints, failures, event time
         └─ VertexSighting, CheckpointSighting, FailureSighting, RestoreSighting

Units    rates are rows per second; busy, backpressured and idle are percent of the busiest subtask;
         event times are epoch ms. None is unknown: nothing is made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class VertexSighting:
    """One vertex, over its subtasks."""

    id: str
    state: str
    parallelism: int
    running: int
    in_rate: float | None
    out_rate: float | None
    busy: float | None
    backpressured: float | None
    idle: float | None
    watermark_ms: float | None
    is_source: bool
    is_sink: bool
    skew: float | None = None
    """Rows per second of the subtask with the most, over the mean of all."""
    state_bytes: int | None = None
    """In the last completed checkpoint."""


@dataclass(frozen=True, slots=True)
class CheckpointSighting:
    """One entry of the checkpoint history."""

    id: int
    is_savepoint: bool
    status: str
    """in_progress, completed or failed."""
    triggered_ms: int
    duration_ms: int | None
    size_bytes: int | None
    path: str
    failure: str
    detail: Mapping[str, Any]

    @property
    def end_ms(self) -> int | None:
        """When it ended."""
        return None if self.duration_ms is None else self.triggered_ms + self.duration_ms


@dataclass(frozen=True, slots=True)
class FailureSighting:
    """One entry of the exception history."""

    at_ms: int
    name: str
    sentence: str
    task: str
    trace: str = ""
    domain: str = ""
    operator: str = ""
    task_manager: str = ""
    verdict: str = ""
    """Why no restart followed; empty when one did."""
    echoes: tuple[FailureSighting, ...] = ()
    """What other subtasks said of the same restart."""


@dataclass(frozen=True, slots=True)
class RestoreSighting:
    """The last time that state was restored."""

    checkpoint: int
    at_ms: int
    is_savepoint: bool
    path: str


@dataclass(frozen=True, slots=True)
class JobSighting:
    """One job."""

    id: str
    state: str
    since_ms: int | None
    waiting_for: str
    uptime_ms: int | None
    restarts: int | None
    plan: Mapping[str, Any]
    vertices: tuple[VertexSighting, ...]
    checkpoints: tuple[CheckpointSighting, ...]
    """Newest first."""
    completed: CheckpointSighting | None
    """The last completed checkpoint, which outlives the history."""
    failures: tuple[FailureSighting, ...]
    """Newest first."""
    event_ms: float | None
    """Event-time position: the lowest watermark of the sources."""
    newest_ms: float | None
    """Newest event time that the sources have read."""
    pending_rows: int | None
    restored: RestoreSighting | None = None

    def node(self, vertex_id: str) -> Mapping[str, Any]:
        """A vertex in the plan; empty where the plan has none of that id."""
        nodes = self.plan.get("nodes", ())
        return next((node for node in nodes if node["id"] == vertex_id), {})

    def name_of(self, vertex_id: str) -> str:
        """What people call a vertex: its first operator."""
        return str(next(iter(self.node(vertex_id).get("operators") or ()), vertex_id))

    @property
    def in_rate(self) -> float | None:
        """Rows out of the sources."""
        return total(vertex.in_rate for vertex in self.vertices if vertex.is_source)

    @property
    def out_rate(self) -> float | None:
        """Rows into the sinks."""
        return total(vertex.out_rate for vertex in self.vertices if vertex.is_sink)

    @property
    def busy(self) -> float | None:
        """The busiest subtask."""
        return largest(vertex.busy for vertex in self.vertices)

    @property
    def backpressured(self) -> float | None:
        """The subtask that is held up most."""
        return largest(vertex.backpressured for vertex in self.vertices)

    @property
    def delay_ms(self) -> float | None:
        """By how much the watermark is behind the newest event."""
        if self.event_ms is None or self.newest_ms is None:
            return None
        return max(0.0, self.newest_ms - self.event_ms)


@dataclass(frozen=True, slots=True)
class EngineSighting:
    """One engine."""

    version: str
    task_managers: int
    slots: int
    slots_free: int
    states: Mapping[str, str]
    """State of every job that the engine knows, by its id."""
    jobs: Mapping[str, JobSighting] = field(default_factory=dict)

    @property
    def newest_end_ms(self) -> int:
        """When the last checkpoint of any job ended, by the engine's clock; 0 when none has."""
        ends = (one.end_ms for job in self.jobs.values() for one in job.checkpoints)
        return max((end for end in ends if end is not None), default=0)


def total(figures: Iterable[float | None]) -> float | None:
    """The sum of what is known; None when nothing is."""
    known = [figure for figure in figures if figure is not None]
    return sum(known) if known else None


def largest(figures: Iterable[float | None]) -> float | None:
    """The largest of what is known; None when nothing is."""
    return max((figure for figure in figures if figure is not None), default=None)
