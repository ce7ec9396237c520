"""Checkpoint statistics of a job, as the service knows them.

    CheckpointHistory ─▶ CheckpointStats ─▶ VertexCheckpoint ─▶ SubtaskCheckpoint

Units    times are epoch ms, durations ms, sizes bytes; -1 where nothing was acknowledged yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from engine.elements import AfterBarrier, SnapshotKind


class CheckpointStatus(StrEnum):
    """Flink's names for what became of a checkpoint."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class SubtaskCheckpoint:
    """How one subtask took its part of a checkpoint; there is one for each that acknowledged."""

    index: int
    ack_ms: int
    duration_ms: int
    """From the trigger at the coordinator to the acknowledgement."""
    start_delay_ms: int
    """From the trigger to the first barrier that reached the subtask."""
    alignment_ms: int
    sync_ms: int
    async_ms: int
    state_bytes: int
    checkpointed_bytes: int
    """What this checkpoint wrote; less than `state_bytes` when incremental."""
    processed_bytes: int = 0
    """Read during alignment; 0 where it is not measured."""


@dataclass(frozen=True, slots=True)
class VertexCheckpoint:
    """The part of one vertex: those of its subtasks that acknowledged."""

    vertex_id: str
    parallelism: int
    subtasks: tuple[SubtaskCheckpoint, ...]


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """One checkpoint or savepoint, pending or ended."""

    id: int
    kind: SnapshotKind
    status: CheckpointStatus
    triggered_ms: int
    duration_ms: int
    """Up to its end, or up to the latest acknowledgement while it is pending."""
    vertices: tuple[VertexCheckpoint, ...]
    then: AfterBarrier = AfterBarrier.CONTINUE
    external_path: str | None = None
    """Where a completed one lies."""
    discarded: bool = False
    """Whether its files were deleted because newer ones replaced it."""
    failed_ms: int | None = None
    failure: str | None = None
    """One sentence, for a failed one."""

    @property
    def num_subtasks(self) -> int:
        """How many acknowledgements it needs."""
        return sum(vertex.parallelism for vertex in self.vertices)

    def subtasks(self) -> Iterator[SubtaskCheckpoint]:
        """Every acknowledgement so far."""
        for vertex in self.vertices:
            yield from vertex.subtasks


@dataclass(frozen=True, slots=True)
class RestoredCheckpoint:
    """What the present attempt started from."""

    id: int
    restored_ms: int
    is_savepoint: bool
    external_path: str | None


@dataclass(frozen=True, slots=True)
class CheckpointCounts:
    """How many there were since the job was submitted."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


@dataclass(frozen=True, slots=True)
class CheckpointHistory:
    """What a job remembers: the latest of each sort, and the last few of all."""

    counts: CheckpointCounts
    history: tuple[CheckpointStats, ...]
    """Newest first; with pending ones."""
    latest_completed: CheckpointStats | None = None
    """The latest completed one that is not a savepoint."""
    latest_savepoint: CheckpointStats | None = None
    latest_failed: CheckpointStats | None = None
    restored: RestoredCheckpoint | None = None

    def find(self, checkpoint_id: int) -> CheckpointStats | None:
        """The one with this id, if it is still remembered."""
        latest = (self.latest_completed, self.latest_savepoint, self.latest_failed)
        known = (*self.history, *(stats for stats in latest if stats is not None))
        return next((stats for stats in known if stats.id == checkpoint_id), None)


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """How a job takes checkpoints. `interval_ms` is 0 when it takes none by itself."""

    interval_ms: int
    timeout_ms: int
    min_pause_ms: int
    max_concurrent: int
    tolerable_failures: int
    state_backend: str
    storage: str
    retained: int
