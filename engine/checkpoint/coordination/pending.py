"""One snapshot under way: who has acknowledged, its statistics, and its manifest in the end.

Order    parts are merged in the order of subtasks, never of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.checkpoint.coordination.effects import Operation
from engine.checkpoint.coordination.failure import Ack, FailureReason
from engine.checkpoint.coordination.stats import (
    CheckpointStats,
    CheckpointStatus,
    SubtaskCheckpoint,
    VertexCheckpoint,
)
from engine.checkpoint.format.entries import (
    OperatorEntry,
    OperatorPart,
    SubtaskSnapshot,
    merge_parts,
)
from engine.checkpoint.format.manifest import Manifest
from engine.elements import AfterBarrier, Barrier, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan, VertexPlan
from engine.graph.tasks import tasks_of
from engine.version import VERSION


@dataclass(slots=True, repr=False)
class PendingSnapshot:
    """Collects the acknowledgements of one barrier."""

    barrier: Barrier
    plan: Plan
    operation: Operation | None = None
    writing: bool = False
    """Every subtask has acknowledged, and the manifest is on its way."""
    _acks: dict[TaskId, SubtaskSnapshot] = field(default_factory=dict)
    _taken: dict[TaskId, SubtaskCheckpoint] = field(default_factory=dict)
    """Statistics of each acknowledgement."""

    def __repr__(self) -> str:
        phase = "writing" if self.writing else f"{len(self._acks)} acknowledged"
        return f"{self.name} ({phase})"

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.barrier.kind} {self.id}"

    @property
    def id(self) -> int:
        """The checkpoint id."""
        return self.barrier.checkpoint_id

    @property
    def is_recoverable(self) -> bool:
        """Whether a restart would begin here, so that sinks may commit.

        A savepoint that the job runs on from belongs to a person, who may move or delete it. If
        sinks committed with it, a restart from the checkpoint before would write the rows again.
        """
        return self.barrier.kind is SnapshotKind.CHECKPOINT or self.ends_job

    @property
    def ends_job(self) -> bool:
        """Whether the sources read nothing after its barrier."""
        return self.barrier.then is not AfterBarrier.CONTINUE

    @property
    def is_acknowledged(self) -> bool:
        """Whether every subtask has acknowledged."""
        return len(self._acks) == sum(vertex.parallelism for vertex in self.plan.vertices)

    def name_of(self, task: TaskId) -> str:
        """What people call a subtask."""
        names = {vertex.id: vertex.name for vertex in self.plan.vertices}
        return f"{names.get(task.vertex, task.vertex)} {task.subtask}"

    def missing(self) -> list[str]:
        """Names of subtasks that have not acknowledged, for people."""
        return [self.name_of(task) for task in tasks_of(self.plan) if task not in self._acks]

    def ack(self, snapshot: SubtaskSnapshot, now_ms: int) -> Ack:
        """Take the acknowledgement of one subtask."""
        vertices = {vertex.id: vertex for vertex in self.plan.vertices}
        vertex = vertices.get(snapshot.task.vertex)
        if vertex is None or not 0 <= snapshot.task.subtask < vertex.parallelism:
            return Ack.UNKNOWN
        if snapshot.task in self._acks:
            return Ack.DUPLICATE
        self._acks[snapshot.task] = snapshot
        self._taken[snapshot.task] = self._subtask(snapshot, now_ms)
        return Ack.ACCEPTED

    def failure(self, reason: FailureReason, detail: str | None) -> str:
        """Why it came to nothing, in one sentence; for a stop with what the job does instead."""
        sentence = f"{self.name} failed, {reason.sentence}"
        if detail is not None:
            sentence += f": {detail}"
        is_stop = self.ends_job and self.barrier.kind is SnapshotKind.SAVEPOINT
        if not (is_stop and reason.counts):
            return sentence
        drained = self.barrier.then is AfterBarrier.DRAIN
        return f"{sentence}; the job {'restarts' if drained else 'runs on'}"

    def manifest(self, job_id: str, plan_hash: str, now_ms: int) -> Manifest:
        """Put all parts together; `plan_hash`: that of the plan, which takes a while."""
        return Manifest(
            job_id=job_id,
            job_name=self.plan.name,
            plan_hash=plan_hash,
            checkpoint_id=self.id,
            kind=self.barrier.kind,
            created_ms=now_ms,
            engine_version=VERSION,
            operators=tuple(
                self._entry(vertex, operator.uid, operator.name)
                for vertex in self.plan.vertices
                for operator in vertex.operators
            ),
        )

    def stats(self) -> CheckpointStats:
        """How far it is."""
        acks = (taken.ack_ms for taken in self._taken.values())
        latest = max(acks, default=self.barrier.triggered_ms)
        return self._stats(CheckpointStatus.IN_PROGRESS, latest)

    def completed(self, now_ms: int) -> CheckpointStats:
        """Statistics at its end."""
        return self._stats(CheckpointStatus.COMPLETED, now_ms, external_path=self.barrier.folder)

    def failed(self, reason: FailureReason, failure: str, now_ms: int) -> CheckpointStats:
        """Statistics when it came to nothing."""
        return self._stats(
            CheckpointStatus.FAILED, now_ms, failed_ms=now_ms, reason=reason, failure=failure
        )

    def _stats(
        self,
        status: CheckpointStatus,
        until_ms: int,
        *,
        external_path: str | None = None,
        failed_ms: int | None = None,
        reason: FailureReason | None = None,
        failure: str | None = None,
    ) -> CheckpointStats:
        return CheckpointStats(
            id=self.id,
            kind=self.barrier.kind,
            status=status,
            triggered_ms=self.barrier.triggered_ms,
            duration_ms=until_ms - self.barrier.triggered_ms,
            vertices=tuple(self._vertex(vertex) for vertex in self.plan.vertices),
            then=self.barrier.then,
            external_path=external_path,
            failed_ms=failed_ms,
            reason=reason,
            failure=failure,
        )

    def _vertex(self, vertex: VertexPlan) -> VertexCheckpoint:
        ids = (TaskId(vertex.id, index) for index in range(vertex.parallelism))
        subtasks = tuple(self._taken[id_] for id_ in ids if id_ in self._taken)
        return VertexCheckpoint(vertex.id, vertex.parallelism, subtasks)

    def _subtask(self, snapshot: SubtaskSnapshot, ack_ms: int) -> SubtaskCheckpoint:
        timing = snapshot.timing
        return SubtaskCheckpoint(
            index=snapshot.task.subtask,
            ack_ms=ack_ms,
            duration_ms=ack_ms - self.barrier.triggered_ms,
            start_delay_ms=timing.start_delay_ms,
            alignment_ms=timing.alignment_ms,
            sync_ms=timing.sync_ms,
            async_ms=timing.async_ms,
            state_bytes=snapshot.size_bytes,
            checkpointed_bytes=snapshot.written_bytes,
            operator_bytes={part.uid: part.size_bytes for part in snapshot.operators},
        )

    def _entry(self, vertex: VertexPlan, uid: str, name: str) -> OperatorEntry:
        merged = merge_parts(
            [self._part(vertex, index, uid) for index in range(vertex.parallelism)]
        )
        return OperatorEntry(
            uid=uid,
            name=name,
            vertex=vertex.id,
            parallelism=vertex.parallelism,
            max_parallelism=self.plan.max_parallelism,
            watermark=merged.watermark,
            states=merged.states,
            splits=merged.splits,
            committables=merged.committables,
        )

    def _part(self, vertex: VertexPlan, subtask: int, uid: str) -> OperatorPart:
        snapshot = self._acks[TaskId(vertex.id, subtask)]
        return next(part for part in snapshot.operators if part.uid == uid)
