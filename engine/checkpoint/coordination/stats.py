"""What became of each checkpoint of a job, for people; outlives the attempts of the job.

    CheckpointLog --history()--> CheckpointHistory > CheckpointStats > Vertex- > SubtaskCheckpoint

Units    times are epoch ms, durations ms, sizes bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from engine.checkpoint.coordination.failure import FailureReason
from engine.elements import AfterBarrier, SnapshotKind

REMEMBERED = 50
"""Ended checkpoints kept in memory: a minute at one a second. Longer history is the control
plane's."""


class CheckpointStatus(StrEnum):
    """What became of a checkpoint; the names are Flink's."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class SubtaskCheckpoint:
    """How one subtask took its part; there is one for each that acknowledged."""

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
    operator_bytes: Mapping[str, int] = field(default_factory=dict)
    """State per operator uid."""


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
    reason: FailureReason | None = None
    failure: str | None = None
    """One sentence, for a failed one."""

    @property
    def num_subtasks(self) -> int:
        """How many acknowledgements it needs."""
        return sum(vertex.parallelism for vertex in self.vertices)

    @property
    def state_bytes(self) -> int:
        """State of all subtasks that acknowledged."""
        return sum(subtask.state_bytes for subtask in self.subtasks())

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

    restored: int = 0
    total: int = 0
    in_progress: int = 0
    completed: int = 0
    failed: int = 0


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


class CheckpointLog:
    """Collects statistics over all attempts of one job."""

    def __init__(self) -> None:
        self._pending: dict[int, CheckpointStats] = {}
        self._ended: deque[CheckpointStats] = deque(maxlen=REMEMBERED)
        self._latest: dict[str, CheckpointStats] = {}
        self._restored: RestoredCheckpoint | None = None
        self._counts = CheckpointCounts()

    def put(self, stats: CheckpointStats) -> None:
        """Take the newest statistics of a checkpoint."""
        self._take(stats)

    def _take(self, stats: CheckpointStats) -> None:
        if stats.status is CheckpointStatus.IN_PROGRESS:
            if stats.id not in self._pending:
                self._counts = replace(self._counts, total=self._counts.total + 1)
            self._pending[stats.id] = stats
            return
        self._pending.pop(stats.id, None)
        self._ended.append(stats)
        if stats.status is CheckpointStatus.FAILED:
            self._counts = replace(self._counts, failed=self._counts.failed + 1)
            self._latest["failed"] = stats
        else:
            self._counts = replace(self._counts, completed=self._counts.completed + 1)
            self._latest[stats.kind] = stats

    def recall(
        self,
        ended: Iterable[CheckpointStats],
        counts: CheckpointCounts,
        restored: RestoredCheckpoint | None,
    ) -> None:
        """Begin with what an earlier job manager knew; oldest first."""
        for stats in ended:
            self._take(stats)
        self._counts, self._restored = counts, restored

    def restored(self, restored: RestoredCheckpoint) -> None:
        """An attempt started from a snapshot."""
        self._counts = replace(self._counts, restored=self._counts.restored + 1)
        self._restored = restored

    def discarded(self, checkpoint_id: int) -> None:
        """The files of a completed checkpoint were deleted."""
        kept = [
            replace(stats, discarded=True) if stats.id == checkpoint_id else stats
            for stats in self._ended
        ]
        self._ended = deque(kept, maxlen=REMEMBERED)

    def history(self) -> CheckpointHistory:
        """Everything, as values."""
        known = [*self._ended, *self._pending.values()]
        return CheckpointHistory(
            counts=replace(self._counts, in_progress=len(self._pending)),
            history=tuple(sorted(known, key=lambda stats: stats.id, reverse=True)),
            latest_completed=self._latest.get(SnapshotKind.CHECKPOINT),
            latest_savepoint=self._latest.get(SnapshotKind.SAVEPOINT),
            latest_failed=self._latest.get("failed"),
            restored=self._restored,
        )
