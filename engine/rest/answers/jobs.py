"""Answers about jobs, their vertices, their graphs and their failures.

Units    times are epoch ms, -1 when not reached; durations ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.rest.model.jobs import JobStatus, TaskStatus
from engine.rest.sentences import first_sentence

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One line of the list of jobs."""

    id: str
    name: str
    state: JobStatus
    start_ms: int
    end_ms: int
    duration_ms: int
    last_modification_ms: int
    tasks: Mapping[str, int]
    """Subtasks by state, in lower case, and "total"."""
    waiting_for: str | None = None
    """Why it does not run yet, e.g. "waits for 2 slots, 1 free"; None otherwise, and from Flink."""

    @property
    def all_running(self) -> bool:
        """Whether every subtask runs: the state alone does not say so."""
        running = self.tasks.get("running", 0)
        return self.state is JobStatus.RUNNING and 0 < running == self.tasks.get("total")

    @classmethod
    def of(cls, body: JsonObject) -> JobSummary:
        """Read an entry of `/jobs/overview`."""
        return cls(
            id=body["jid"],
            name=body["name"],
            state=JobStatus(body["state"]),
            start_ms=body["start-time"],
            end_ms=body["end-time"],
            duration_ms=body["duration"],
            last_modification_ms=body["last-modification"],
            tasks=body["tasks"],
            waiting_for=body.get("headwater", {}).get("waiting-for"),
        )


@dataclass(frozen=True, slots=True)
class TaskCounters:
    """What the subtasks of a vertex did together."""

    read_bytes: int
    read_records: int
    write_bytes: int
    write_records: int
    busy_ms: float
    backpressured_ms: float
    idle_ms: float

    @classmethod
    def of(cls, body: JsonObject) -> TaskCounters:
        """Read `metrics` of a vertex or a subtask."""
        return cls(
            read_bytes=body["read-bytes"],
            read_records=body["read-records"],
            write_bytes=body["write-bytes"],
            write_records=body["write-records"],
            busy_ms=_number(body["accumulated-busy-time"]),
            backpressured_ms=_number(body["accumulated-backpressured-time"]),
            idle_ms=_number(body["accumulated-idle-time"]),
        )


@dataclass(frozen=True, slots=True)
class VertexSummary:
    """One vertex of a job."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    status: TaskStatus
    start_ms: int
    end_ms: int
    tasks: Mapping[str, int]
    """Subtasks by state, in upper case."""
    counters: TaskCounters

    @classmethod
    def of(cls, body: JsonObject) -> VertexSummary:
        """Read an entry of `vertices` of `/jobs/:id`."""
        return cls(
            id=body["id"],
            name=body["name"],
            parallelism=body["parallelism"],
            max_parallelism=body["maxParallelism"],
            status=TaskStatus(body["status"]),
            start_ms=body["start-time"],
            end_ms=body["end-time"],
            tasks=body["tasks"],
            counters=TaskCounters.of(body["metrics"]),
        )


@dataclass(frozen=True, slots=True)
class PlanInput:
    """An edge of a graph, seen from its target."""

    source: str
    port: int
    ship_strategy: str
    """FORWARD, HASH, REBALANCE, BROADCAST …"""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A vertex of a graph."""

    id: str
    parallelism: int
    operators: tuple[str, ...]
    """Names of the chained operators, head first."""
    inputs: tuple[PlanInput, ...]

    @classmethod
    def of(cls, body: JsonObject) -> PlanNode:
        """Read an entry of `nodes` of a plan."""
        inputs = (
            PlanInput(part["id"], part["num"], part["ship_strategy"])
            for part in body.get("inputs", ())
        )
        lines = (line.removeprefix("+- ") for line in body["description"].split("<br/>"))
        names = tuple(line.strip() for line in lines if line.strip())
        return cls(body["id"], body["parallelism"], names, tuple(inputs))


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The graph of a job."""

    name: str
    nodes: tuple[PlanNode, ...]

    @classmethod
    def of(cls, body: JsonObject) -> JobPlan:
        """Read the `plan` of a job or an artifact."""
        return cls(body["name"], tuple(PlanNode.of(node) for node in body["nodes"]))


@dataclass(frozen=True, slots=True)
class JobDetail:
    """Everything about one job in one answer."""

    id: str
    name: str
    state: JobStatus
    start_ms: int
    end_ms: int
    duration_ms: int
    now_ms: int
    """The engine's own clock when it answered."""
    max_parallelism: int
    timestamps: Mapping[JobStatus, int]
    """When each state was last entered; 0 for never."""
    vertices: tuple[VertexSummary, ...]
    plan: JobPlan
    waiting_for: str | None = None
    """Why it does not run yet, in words; only our engine says so."""

    @property
    def all_running(self) -> bool:
        """Whether every subtask runs: the state alone does not say so."""
        running = all(vertex.status is TaskStatus.RUNNING for vertex in self.vertices)
        return self.state is JobStatus.RUNNING and bool(self.vertices) and running

    @classmethod
    def of(cls, body: JsonObject) -> JobDetail:
        """Read `/jobs/:id`."""
        return cls(
            id=body["jid"],
            name=body["name"],
            state=JobStatus(body["state"]),
            start_ms=body["start-time"],
            end_ms=body["end-time"],
            duration_ms=body["duration"],
            now_ms=body["now"],
            max_parallelism=body["maxParallelism"],
            timestamps={JobStatus(name): at for name, at in body["timestamps"].items()},
            vertices=tuple(VertexSummary.of(vertex) for vertex in body["vertices"]),
            plan=JobPlan.of(body["plan"]),
            waiting_for=body.get("headwater", {}).get("waiting-for"),
        )


@dataclass(frozen=True, slots=True)
class SubtaskSummary:
    """One subtask of a vertex."""

    index: int
    status: TaskStatus
    attempt: int
    endpoint: str
    task_manager_id: str
    start_ms: int
    end_ms: int
    counters: TaskCounters

    @classmethod
    def of(cls, body: JsonObject) -> SubtaskSummary:
        """Read an entry of `subtasks` of `/jobs/:id/vertices/:vid`."""
        return cls(
            index=body["subtask"],
            status=TaskStatus(body["status"]),
            attempt=body["attempt"],
            endpoint=body["endpoint"],
            task_manager_id=body["taskmanager-id"],
            start_ms=body["start-time"],
            end_ms=body["end-time"],
            counters=TaskCounters.of(body["metrics"]),
        )


@dataclass(frozen=True, slots=True)
class Backpressure:
    """How one subtask spends its time, as shares of it."""

    subtask: int
    level: str
    """ok, low or high."""
    backpressured: float
    idle: float
    busy: float


@dataclass(frozen=True, slots=True)
class FailureEntry:
    """One failure of a job, or an echo of one."""

    name: str
    sentence: str
    """The root cause as far as one line can say it."""
    trace: str
    at_ms: int
    task: str | None
    task_manager_id: str | None
    domain: str | None = None
    """user, external or internal; only our engine says."""
    operator: str | None = None
    """Whose function it was; only our engine says."""
    verdict: str | None = None
    """Why no restart followed; only our engine says, and None when one did."""
    echoes: tuple[FailureEntry, ...] = ()
    """What other subtasks said of the same restart."""

    @classmethod
    def of(cls, body: JsonObject) -> FailureEntry:
        """Read an entry of `/jobs/:id/exceptions`."""
        causes = list(body.get("concurrentExceptions", ()))
        labels = body.get("failureLabels", {})
        shown = body
        # Flink hides the real cause among the concurrent ones when recovery itself gave up; our
        # engine, which always names a domain, never does.
        if causes and not body.get("taskName") and "domain" not in labels:
            shown = causes.pop(0)
        name = shown["exceptionName"]
        return cls(
            name=name,
            sentence=first_sentence(shown["stacktrace"]).removeprefix(f"{name}: "),
            trace=shown["stacktrace"],
            at_ms=body["timestamp"],
            task=shown.get("taskName"),
            task_manager_id=shown.get("taskManagerId"),
            domain=labels.get("domain"),
            operator=labels.get("operator"),
            verdict=labels.get("verdict"),
            echoes=tuple(map(cls.of, causes)),
        )


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended; `status` None while it runs."""

    status: str | None
    """SUCCEEDED, FAILED, CANCELED or UNKNOWN."""
    failure: str | None = None

    @classmethod
    def of(cls, body: JsonObject) -> JobResult:
        """Read `/jobs/:id/execution-result`."""
        result = body.get("job-execution-result")
        if result is None:
            return cls(None)
        cause = result.get("failure-cause")
        return cls(result["application-status"], cause and first_sentence(cause["stack-trace"]))


def _number(value: object) -> float:
    """A time that Flink may write as "NaN" while it is not known."""
    return float(value) if isinstance(value, int | float) and value == value else 0.0
