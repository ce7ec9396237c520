"""Answers of our additions under /headwater, and the bodies that they take."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from engine.rest.schema.jobs import OperationState, Throwable


class Capabilities(TypedDict):
    """What this engine is, and which additions it has."""

    engine: str
    version: str
    features: list[str]


class SourceProgress(TypedDict):
    """How far one source is, µs; null is unknown."""

    uid: str
    name: str
    vertex: str
    watermark_us: int | None
    newest_us: int | None
    pending_rows: int | None
    idle: bool
    finished: bool


class Progress(TypedDict):
    """How far a job is in event time, µs; null is unknown."""

    at_ms: int
    event_time_us: int | None
    pending_rows: int | None
    sources: list[SourceProgress]


class EnginePlan(TypedDict):
    """The plan in the engine's own form, which may grow."""

    format_version: int
    hash: str
    name: str
    max_parallelism: int
    checkpoint_interval_ms: int | None
    vertices: list[dict[str, object]]
    edges: list[dict[str, object]]
    warnings: list[str]
    state_backend: str


class EnginePlanAnswer(TypedDict):
    """A plan."""

    plan: EnginePlan


class BatchStatistics(TypedDict):
    """Of all batches, and by step: lists of equal length, null where there was no batch."""

    summary: dict[str, float | None]
    series: dict[str, list[float | None]]


class SourceStatistics(BatchStatistics):
    """Of one source."""

    uid: str
    name: str
    vertex: str


class Statistics(TypedDict):
    """Streaming statistics."""

    from_ms: int
    to_ms: int
    step_s: int
    time_ms: list[int]
    job: BatchStatistics
    sources: list[SourceStatistics]


class ReadLimit(TypedDict):
    """Of one source; null is no limit."""

    uid: str
    name: str
    vertex: str
    rows_per_second: float | None


class ReadLimits(TypedDict):
    """Of each source."""

    sources: list[ReadLimit]


class ReadLimitBody(TypedDict):
    """Of one source, or of each."""

    rowsPerSecond: float | None
    source: NotRequired[str | None]


class Column(TypedDict):
    """A column and its Polars type."""

    name: str
    type: str


class StateRows(TypedDict):
    """Rows of a state: bytes as hex, times ISO 8601, durations in seconds."""

    columns: list[Column]
    rows: list[list[object]]
    truncated: bool


class StateValue(StateRows):
    """What one key has in one state."""

    operator: str
    state: str
    kind: str
    found: bool


class ReadBody(TypedDict):
    """Which rows of a snapshot; a query sees the table `state`."""

    path: str
    operator: str
    state: str
    key: NotRequired[dict[str, str | float | bool] | None]
    sql: NotRequired[str | None]
    limit: NotRequired[int | None]


class PathBody(TypedDict):
    """A snapshot."""

    path: str
    triggerId: NotRequired[str | None]


class CompareBody(TypedDict):
    """Two snapshots, and how many rows of each state to show."""

    left: str
    right: str
    examples: NotRequired[int | None]
    triggerId: NotRequired[str | None]


class Done(TypedDict):
    """Bytes of a verification, rows of a comparison."""

    done: int
    total: int


Verified = TypedDict(
    "Verified",
    {
        "whole": NotRequired[bool],
        "files": NotRequired[int],
        "size_bytes": NotRequired[int],
        "problems": NotRequired[list[str]],
        "failure-cause": NotRequired[Throwable],
    },
)


class Verification(TypedDict):
    """Where a verification stands."""

    status: OperationState
    progress: Done
    operation: Verified | None


class StateDifference(TypedDict):
    """Numbers are rows."""

    operator: str
    state: str
    equal: int
    changed: int
    only_left: int
    only_right: int
    reason: str
    examples: list[dict[str, object]]


class Place(TypedDict):
    """Where a split of a source goes on; a watermark of null is not known yet."""

    position: object
    watermark: int | None
    idle: bool
    finished: bool
    generator: NotRequired[object]


class SplitDifference(TypedDict):
    """A split whose place differs; null is not there."""

    operator: str
    split: str
    left: Place | None
    right: Place | None


Compared = TypedDict(
    "Compared",
    {
        "equal": NotRequired[bool],
        "states": NotRequired[list[StateDifference]],
        "splits": NotRequired[list[SplitDifference]],
        "failure-cause": NotRequired[Throwable],
    },
)


class Comparison(TypedDict):
    """Where a comparison stands."""

    status: OperationState
    progress: Done
    operation: Compared | None


class Savepoint(TypedDict):
    """What a snapshot holds: `docs/snapshots.md` tells what is in a manifest."""

    path: str
    size_bytes: int
    manifest: dict[str, object]


class PreflightRow(TypedDict):
    """What becomes of an operator, or of one of its states."""

    uid: str
    name: str
    state: str | None
    outcome: str
    reason: str
    sentence: str
    stored: str
    wanted: str
    rows: int
    size_bytes: int
    allowed: bool


class SourceInput(TypedDict):
    """What a source has no more of the input that it would go on with, and of how much it knows."""

    uid: str
    gone: list[str]
    unknown: int


class Preflight(TypedDict):
    """What a start from a snapshot would restore."""

    ok: bool
    rows: list[PreflightRow]
    inputs: list[SourceInput]
    warnings: list[str]
    savepoint: Savepoint
    plan: EnginePlan


class ProgramBody(TypedDict):
    """How a program is to run."""

    programArgsList: NotRequired[list[str] | None]
    parallelism: NotRequired[int | None]
    flinkConfiguration: NotRequired[dict[str, str | float | bool] | None]
    entryClass: NotRequired[str | None]


class RunBody(ProgramBody):
    """How a job starts."""

    jobId: NotRequired[str | None]
    savepointPath: NotRequired[str | None]
    allowNonRestoredState: NotRequired[bool | None]
    allowNonRestoredOperators: NotRequired[list[str] | None]
    acceptMissingInput: NotRequired[list[str] | None]
    claimMode: NotRequired[str | None]


class PreflightBody(ProgramBody):
    """A program and a snapshot."""

    artifact: str
    savepointPath: str
    allowNonRestoredState: NotRequired[bool | None]
    allowNonRestoredOperators: NotRequired[list[str] | None]
    acceptMissingInput: NotRequired[list[str] | None]


class Bounds(TypedDict):
    """Of a vertex's parallelism."""

    lowerBound: NotRequired[int]
    upperBound: int


class Requirements(TypedDict):
    """Of a vertex."""

    parallelism: Bounds


class RescaleBody(TypedDict):
    """Either of all, or by vertex id or operator uid."""

    parallelism: NotRequired[int | None]
    vertices: NotRequired[dict[str, int] | None]
    triggerId: NotRequired[str | None]


class LocalTaskManager(TypedDict):
    """One that is wanted."""

    name: str
    state: str
    pid: int | None


class LocalTaskManagers(TypedDict):
    """Which are wanted, and which of them run."""

    respawn: bool
    taskmanagers: list[LocalTaskManager]


class TaskManagerBody(TypedDict):
    """Its name, or one is chosen."""

    name: NotRequired[str | None]


class TaskManagerName(TypedDict):
    """Of one that starts."""

    name: str


class RespawnBody(TypedDict):
    """Whether lost ones are started again."""

    respawn: bool
