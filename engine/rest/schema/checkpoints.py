"""Answers about checkpoints and savepoints of a job, and about operations in general."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from engine.checkpoint.coordination.stats import CheckpointStatus
from engine.rest.schema.jobs import OperationState, Throwable

Figure = float | str
"""A number; Flink writes "NaN" where there is none."""


class Counts(TypedDict):
    """Of all checkpoints of a job."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class Percentiles(TypedDict):
    """One figure over several checkpoints, or over subtasks."""

    min: int
    max: int
    avg: int
    p50: Figure
    p90: Figure
    p95: Figure
    p99: Figure
    p999: Figure


class CheckpointSummary(TypedDict):
    """Over the completed ones."""

    checkpointed_size: Percentiles
    state_size: Percentiles
    end_to_end_duration: Percentiles
    alignment_buffered: Percentiles
    processed_data: Percentiles
    persisted_data: Percentiles


class Sizes(TypedDict):
    """What a vertex, or a whole checkpoint, put together."""

    id: int
    status: CheckpointStatus
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    end_to_end_duration: int


class CheckpointAddition(TypedDict):
    """The typed reason of a failure."""

    reason: str | None


class Checkpoint(Sizes):
    """One checkpoint or savepoint; `tasks` by vertex, empty in a list."""

    className: str
    is_savepoint: bool
    savepointFormat: str | None
    trigger_timestamp: int
    checkpoint_type: str
    tasks: dict[str, Sizes]
    external_path: NotRequired[str | None]
    discarded: NotRequired[bool]
    failure_timestamp: NotRequired[int]
    failure_message: NotRequired[str | None]
    headwater: NotRequired[CheckpointAddition]


class RestoredFrom(TypedDict):
    """What the job goes on from."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str | None


class Latest(TypedDict):
    """The newest of each sort."""

    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: RestoredFrom | None


class Checkpoints(TypedDict):
    """Counts, summary, and the last checkpoints, newest first."""

    counts: Counts
    summary: CheckpointSummary
    latest: Latest
    history: list[Checkpoint]


class Externalization(TypedDict):
    """Whether checkpoints outlive their job."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfigAddition(TypedDict):
    """How many are kept."""

    retained: int


class CheckpointConfig(TypedDict):
    """How a job takes checkpoints."""

    mode: str
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool
    changelog_periodic_materialization_interval: NotRequired[int]
    changelog_storage: NotRequired[str]
    headwater: NotRequired[CheckpointConfigAddition]


SyncAsync = TypedDict("SyncAsync", {"sync": int, "async": int})
SyncAsyncSummary = TypedDict("SyncAsyncSummary", {"sync": Percentiles, "async": Percentiles})


class Alignment(TypedDict):
    """Of one subtask."""

    buffered: int
    processed: int
    persisted: int
    duration: int


class AlignmentSummary(TypedDict):
    """Over subtasks."""

    buffered: Percentiles
    processed: Percentiles
    persisted: Percentiles
    duration: Percentiles


class SubtaskSummary(TypedDict):
    """Over the subtasks of a vertex."""

    checkpointed_size: Percentiles
    state_size: Percentiles
    end_to_end_duration: Percentiles
    checkpoint_duration: SyncAsyncSummary
    alignment: AlignmentSummary
    start_delay: Percentiles


class SubtaskCheckpoint(TypedDict):
    """The part of one subtask; one that has not acknowledged has only an index."""

    className: str
    index: int
    status: str
    ack_timestamp: NotRequired[int]
    end_to_end_duration: NotRequired[int]
    checkpointed_size: NotRequired[int]
    state_size: NotRequired[int]
    checkpoint: NotRequired[SyncAsync]
    alignment: NotRequired[Alignment]
    start_delay: NotRequired[int]
    unaligned_checkpoint: NotRequired[bool]
    aborted: NotRequired[bool]
    headwater: NotRequired[dict[str, object]]


class CheckpointSubtasks(Sizes):
    """The part of one vertex, by subtasks."""

    summary: SubtaskSummary
    subtasks: list[SubtaskCheckpoint]


Triggered = TypedDict("Triggered", {"request-id": str})

SavepointResult = TypedDict(
    "SavepointResult", {"location": NotRequired[str], "failure-cause": NotRequired[Throwable]}
)


class SavepointOperation(TypedDict):
    """Where a savepoint, a stop or a disposal stands."""

    status: OperationState
    operation: SavepointResult | None


class CheckpointResult(TypedDict):
    """What a manual checkpoint came to."""

    checkpointId: NotRequired[int]
    failureCause: NotRequired[Throwable]


class CheckpointOperation(TypedDict):
    """Where a manual checkpoint stands."""

    status: OperationState
    operation: CheckpointResult | None


SavepointBody = TypedDict(
    "SavepointBody",
    {
        "target-directory": NotRequired[str | None],
        "cancel-job": NotRequired[bool | None],
        "formatType": NotRequired[str | None],
        "triggerId": NotRequired[str | None],
    },
)


class StopBody(TypedDict):
    """End a job with a savepoint."""

    targetDirectory: NotRequired[str | None]
    drain: NotRequired[bool | None]
    formatType: NotRequired[str | None]
    triggerId: NotRequired[str | None]


class CheckpointBody(TypedDict):
    """Take a checkpoint now."""

    checkpointType: NotRequired[str | None]
    triggerId: NotRequired[str | None]


DisposalBody = TypedDict("DisposalBody", {"savepoint-path": str})
