"""Answers about jobs: lists, one job, its plan, failures and end."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from engine.rest.model.jobs import JobStatus, TaskStatus


class JobId(TypedDict):
    """A job in the shortest list."""

    id: str
    status: JobStatus


class JobIds(TypedDict):
    """Ids and states of all jobs."""

    jobs: list[JobId]


JobAddition = TypedDict("JobAddition", {"waiting-for": str | None})

JobSummary = TypedDict(
    "JobSummary",
    {
        "jid": str,
        "name": str,
        "jobType": str,
        "schedulerType": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "state": JobStatus,
        "last-modification": int,
        "tasks": dict[str, int],
        "pending-operators": int,
        "headwater": NotRequired[JobAddition],
    },
)


class JobSummaries(TypedDict):
    """All jobs with the counts of their tasks."""

    jobs: list[JobSummary]


TaskFigures = TypedDict(
    "TaskFigures",
    {
        "read-bytes": int,
        "read-bytes-complete": bool,
        "write-bytes": int,
        "write-bytes-complete": bool,
        "read-records": int,
        "read-records-complete": bool,
        "write-records": int,
        "write-records-complete": bool,
        "accumulated-backpressured-time": int,
        "accumulated-idle-time": int,
        "accumulated-busy-time": float,
    },
)

JobVertex = TypedDict(
    "JobVertex",
    {
        "id": str,
        "slotSharingGroupId": str,
        "name": str,
        "maxParallelism": int,
        "parallelism": int,
        "status": TaskStatus,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "tasks": dict[TaskStatus, int],
        "metrics": TaskFigures,
    },
)


class PlanInput(TypedDict):
    """An edge of a plan, at its target."""

    id: str
    num: int
    exchange: str
    ship_strategy: str


class PlanNode(TypedDict):
    """A vertex of a plan."""

    id: str
    operator: str
    parallelism: int
    operator_strategy: str
    description: str
    optimizer_properties: dict[str, object]
    inputs: NotRequired[list[PlanInput]]


class JobGraph(TypedDict):
    """The vertices of a job and its edges."""

    jid: str
    name: str
    type: str
    nodes: list[PlanNode]


class PlanAnswer(TypedDict):
    """A plan."""

    plan: JobGraph


Job = TypedDict(
    "Job",
    {
        "jid": str,
        "application-id": str,
        "name": str,
        "isStoppable": bool,
        "state": JobStatus,
        "job-type": str,
        "schedulerType": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
        "maxParallelism": int,
        "now": int,
        "timestamps": dict[JobStatus, int],
        "vertices": list[JobVertex],
        "status-counts": dict[TaskStatus, int],
        "plan": JobGraph,
        "pending-operators": int,
        "headwater": NotRequired[JobAddition],
    },
)


class JobState(TypedDict):
    """The state of a job."""

    status: JobStatus


ExecutionConfig = TypedDict(
    "ExecutionConfig",
    {
        "restart-strategy": str,
        "job-parallelism": int,
        "object-reuse-mode": bool,
        "user-config": dict[str, str],
    },
)

JobConfig = TypedDict("JobConfig", {"jid": str, "name": str, "execution-config": ExecutionConfig})


class FailureEntry(TypedDict):
    """A failure, and what failed with it."""

    exceptionName: str
    stacktrace: str
    timestamp: int
    failureLabels: dict[str, str]
    taskName: NotRequired[str]
    endpoint: NotRequired[str]
    taskManagerId: NotRequired[str]
    concurrentExceptions: NotRequired[list[FailureEntry]]


class FailureEntries(TypedDict):
    """Newest first."""

    entries: list[FailureEntry]
    truncated: bool


class Failures(TypedDict):
    """Why attempts of a job failed."""

    exceptionHistory: FailureEntries


Throwable = TypedDict(
    "Throwable", {"class": str, "stack-trace": str, "serialized-throwable": NotRequired[str]}
)


class OperationState(TypedDict):
    """IN_PROGRESS or COMPLETED: a failure is COMPLETED too."""

    id: str


JobEnd = TypedDict(
    "JobEnd",
    {
        "id": str,
        "name": NotRequired[str],
        "application-status": str,
        "accumulator-results": dict[str, object],
        "net-runtime": int,
        "application-id": NotRequired[str],
        "start-time": NotRequired[int],
        "end-time": NotRequired[int],
        "failure-cause": NotRequired[Throwable],
    },
)

JobResult = TypedDict(
    "JobResult", {"status": OperationState, "job-execution-result": NotRequired[JobEnd]}
)


class Started(TypedDict):
    """A job was accepted."""

    jobid: str
    applicationId: str


class Nothing(TypedDict):
    """An empty object."""


class Errors(TypedDict):
    """A refusal: one sentence each."""

    errors: list[str]
