"""What the coordinator is asked for, and what it wants done.

request(SnapshotRequest) --> Operation, which people poll by its trigger id
coordinator.effects --> the shell sends, writes, deletes, and reports back
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.format.manifest import Manifest
from engine.elements import AfterBarrier, Barrier, SnapshotKind
from engine.graph.jobgraph import TaskId


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """A person, or a schedule, wants a snapshot. The same trigger id asks for the same one."""

    trigger_id: str
    kind: SnapshotKind
    then: AfterBarrier = AfterBarrier.CONTINUE
    directory: str | None = None
    """Folder in which a savepoint makes its own folder. None for checkpoints."""
    full: bool = False
    """Whether a checkpoint is to build on no earlier one."""


class OperationStatus(StrEnum):
    """How far a requested snapshot is."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Operation:
    """A requested snapshot."""

    request: SnapshotRequest
    status: OperationStatus = OperationStatus.IN_PROGRESS
    checkpoint_id: int | None = None
    """None while it waits for its turn."""
    folder: str | None = None
    """Where it lies, once it is complete."""
    reason: FailureReason | None = None
    failure: str | None = None
    """One sentence, when it failed."""


@dataclass(frozen=True, slots=True)
class SendBarrier:
    """Call `trigger` on these source subtasks."""

    barrier: Barrier
    sources: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class WriteManifest:
    """Write `_metadata`, then record the snapshot where a restart finds it.

    Then report `manifest_written`, or `storage_failed`.
    """

    checkpoint_id: int
    folder: str
    manifest: Manifest
    is_recoverable: bool
    """Whether a restart may begin here."""


@dataclass(frozen=True, slots=True)
class NotifyComplete:
    """Call `notify_complete` on every subtask."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """Call `notify_aborted` on every subtask."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class DiscardFolder:
    """Delete what subtasks have written of a snapshot that came to nothing."""

    folder: str


@dataclass(frozen=True, slots=True)
class OperationEnded:
    """A requested snapshot is complete or has failed."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class FailJob:
    """Restart the job from its latest complete snapshot."""

    reason: FailureReason
    message: str


Effect = (
    SendBarrier
    | WriteManifest
    | NotifyComplete
    | NotifyAborted
    | DiscardFolder
    | OperationEnded
    | FailJob
)
