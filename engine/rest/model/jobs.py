"""Jobs, vertices, subtasks and failures, as the service knows them.

    JobDetails ─▶ VertexDetails ─▶ SubtaskDetails ─▶ TaskTotals, metrics, watermarks

Units    times are epoch ms, -1 when not reached; watermarks are engine `Micros` (half-open), None
         when a subtask has none. Only `render/` converts to Flink's conventions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from engine.elements import Micros
from engine.errors import Domain
from engine.graph.plan import Plan

MetricValue = int | float | str | bool


class JobStatus(StrEnum):
    """Flink's names for the states of a job."""

    INITIALIZING = "INITIALIZING"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FAILING = "FAILING"
    FAILED = "FAILED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    RECONCILING = "RECONCILING"

    @property
    def terminal(self) -> bool:
        """Whether a job in this state has ended for ever."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)


class TaskStatus(StrEnum):
    """Flink's names for the states of a subtask, and of a vertex."""

    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"
    RECONCILING = "RECONCILING"

    @property
    def terminal(self) -> bool:
        """Whether a subtask in this state has ended for ever."""
        return self in (TaskStatus.FAILED, TaskStatus.CANCELED, TaskStatus.FINISHED)


@dataclass(frozen=True, slots=True)
class TaskTotals:
    """What a subtask did since its attempt began."""

    read_records: int = 0
    write_records: int = 0
    busy_ms: int = 0
    backpressured_ms: int = 0
    idle_ms: int = 0
    read_bytes: int | None = None
    """None: not measured, as rows that stay in a process have no size on a wire."""
    write_bytes: int | None = None
    complete: bool = True
    """False while a running subtask has not reported yet: the numbers are then a lower bound."""


@dataclass(frozen=True, slots=True)
class SubtaskDetails:
    """One subtask in its current attempt."""

    index: int
    status: TaskStatus
    attempt: int = 0
    endpoint: str = "(unassigned)"
    """Where it runs, for people: host or task manager name."""
    task_manager_id: str = "(unassigned)"
    start_ms: int = -1
    end_ms: int = -1
    status_ms: Mapping[TaskStatus, int] = field(default_factory=dict)
    """How long it has been in each state that it was in."""
    totals: TaskTotals = TaskTotals()
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    """Under Flink's names: numRecordsIn, numRecordsOutPerSecond, busyTimeMsPerSecond …; metrics of
    one chained operator are `<operator name>.<metric>`. Watermarks are not here but below."""
    input_watermark: Micros | None = None
    """None for a source."""
    output_watermark: Micros | None = None


@dataclass(frozen=True, slots=True)
class VertexDetails:
    """A chain of operators with its subtasks."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[SubtaskDetails, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt, or a job, failed."""

    name: str
    """Type of the error, e.g. "FunctionError"."""
    message: str
    """One sentence."""
    at_ms: int
    domain: Domain = Domain.INTERNAL
    traceback: str = ""
    """Python's, without the message line repeated; empty when the cause has none."""
    task: str | None = None
    """E.g. "daily → files (2/3) - execution #4"; None when no single task is to blame."""
    operator: str | None = None
    """Whose function it was; None when that is not known."""
    endpoint: str | None = None
    task_manager_id: str | None = None
    verdict: str | None = None
    """Why no restart followed, e.g. "no restart is left: no restart"; None when one did."""
    concurrent: tuple[Failure, ...] = ()
    """Failures of other tasks that belong to the same restart."""


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """Failures of a job, newest first; `truncated` when older ones were dropped."""

    entries: tuple[Failure, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Latency:
    """How long rows take from a source to one subtask of a step."""

    source_id: str
    vertex_id: str
    subtask: int
    statistics: Mapping[str, float]
    """In ms: count, min, max, mean, stddev, median, p75, p90, p95, p98, p99, p999."""


@dataclass(frozen=True, slots=True)
class JobDetails:
    """Everything about a job but its checkpoints and failures."""

    id: str
    name: str
    status: JobStatus
    start_ms: int
    end_ms: int
    timestamps: Mapping[JobStatus, int]
    """When each state was last entered; states never entered are absent."""
    parallelism: int
    max_parallelism: int
    plan: Plan
    vertices: tuple[VertexDetails, ...]
    """In topological order."""
    restart_strategy: str = ""
    """In words, e.g. "exponential delay, 100 ms to 10 s"."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What the job was submitted with."""
    arguments: Sequence[str] = ()
    waiting_for: str | None = None
    """Why it does not run yet, e.g. "waits for 2 slots, 1 free"; None otherwise."""
    failure: Failure | None = None
    """Why it FAILED; None in any other state."""
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    """Job metrics under Flink's names: numRestarts, uptime, lastCheckpointDuration …"""
    latencies: tuple[Latency, ...] = ()
