"""The checkpoint coordinator of one attempt of a job: a state machine without I/O or clock.

    idle --interval, request, end of input--> pending --every ack--> writing --written--> complete
                                                 |                      |
                                   decline, timeout, job fails       storage fails
                                                 +-------> aborted <----+

    complete --> NotifyComplete --> sinks commit; after STOP or DRAIN the subtasks end
                 (not after a savepoint that the job runs on from: see `is_recoverable`)

One snapshot at a time: requests queue, and go before the periodic ones. When every subtask has
reported the end of its input, one final checkpoint with `then` STOP commits what is left.

Units    all times are epoch ms and are passed in.
Order    ids only grow, over all attempts of a job: pass `first_id`.
Errors   outcomes are values: Ack, FailureReason. Too many failures in a row: FailJob.
Source   Flink's CheckpointCoordinator and CheckpointRequestDecider.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from engine.checkpoint.config import CheckpointConfig
from engine.checkpoint.effects import (
    DiscardFolder,
    Effect,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    Operation,
    OperationEnded,
    OperationStatus,
    SendBarrier,
    SnapshotRequest,
    WriteManifest,
)
from engine.checkpoint.failure import Ack, FailureReason
from engine.checkpoint.manifest import SubtaskSnapshot
from engine.checkpoint.pending import PendingSnapshot
from engine.checkpoint.stats import CheckpointLog
from engine.elements import AfterBarrier, Barrier, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan


class Coordinator:
    """Decides when snapshots begin and what becomes of them."""

    def __init__(
        self,
        job_id: str,
        plan: Plan,
        config: CheckpointConfig,
        log: CheckpointLog,
        *,
        first_id: int,
        now_ms: int,
    ) -> None:
        """Begin when every subtask runs."""
        self.effects: deque[Effect] = deque()
        """To be carried out in order."""
        self._job_id = job_id
        self._plan = plan
        self._config = config
        self._log = log
        self._next_id = first_id
        self._operations: dict[str, Operation] = {}
        self._queue: deque[str] = deque()
        self._pending: PendingSnapshot | None = None
        self._running = set(tasks_of(plan))
        self._failures = 0
        self._failing_since_ms = now_ms
        self._due_ms = now_ms + (config.interval_ms or 0)
        self._stopped = False
        self._base = 0
        """The newest complete checkpoint of this attempt: later ones may build on it."""
        self._discarded: dict[int, str] = {}
        """Folders of aborted snapshots, by id."""

    def __repr__(self) -> str:
        pending = None if self._pending is None else self._pending.barrier
        return f"Coordinator({self._plan.name}, pending {pending}, queued {len(self._queue)})"

    @property
    def next_id(self) -> int:
        """The id of the next snapshot: `first_id` of the next attempt."""
        return self._next_id

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more begins: the job ends with what is complete, or fails."""
        return self._stopped

    @property
    def is_writing(self) -> bool:
        """Whether a manifest is on its way: wait for its report before choosing what to restore."""
        return self._pending is not None and self._pending.writing

    @property
    def next_tick_ms(self) -> int | None:
        """When `tick` has something to decide; None: not before another call."""
        if self._pending is not None:
            expiry = self._pending.barrier.triggered_ms + self._config.timeout_ms
            return None if self._pending.writing else expiry
        if self._stopped:
            return None
        periodic = self._config.interval_ms is not None or not self._running
        return self._due_ms if periodic else None

    def tick(self, now_ms: int) -> None:
        """Time has passed: expire what takes too long, begin what is due."""
        pending = self._pending
        expiry = self.next_tick_ms
        if pending is not None and expiry is not None and now_ms >= expiry:
            missing = ", ".join(pending.missing()[:3])
            seconds = self._config.timeout_ms / 1_000
            detail = f"{missing} did not within {seconds:g} s"
            self._abort(FailureReason.EXPIRED, detail, now_ms)
        self._begin_next(now_ms)

    def request(self, request: SnapshotRequest, now_ms: int) -> Operation:
        """Ask for a snapshot; asking again with the same trigger id changes nothing."""
        known = self._operations.get(request.trigger_id)
        if known is not None:
            return known
        self._put(Operation(request))
        if self._stopped:
            self._fail_operation(request.trigger_id, FailureReason.JOB_ENDED, None)
        else:
            self._queue.append(request.trigger_id)
            self._begin_next(now_ms)
        return self._operations[request.trigger_id]

    def operation(self, trigger_id: str) -> Operation | None:
        """What became of a request."""
        return self._operations.get(trigger_id)

    def ack(self, snapshot: SubtaskSnapshot, now_ms: int) -> Ack:
        """A subtask has written its part."""
        pending = self._pending
        if pending is None or snapshot.checkpoint_id != pending.id:
            return self._late_ack(snapshot.checkpoint_id)
        outcome = pending.ack(snapshot, now_ms)
        if outcome is Ack.ACCEPTED:
            self._log.put(pending.stats())
            if pending.is_acknowledged:
                pending.writing = True
                manifest = pending.manifest(self._job_id, now_ms)
                folder = pending.barrier.folder
                self.effects.append(
                    WriteManifest(pending.id, folder, manifest, pending.is_recoverable)
                )
        return outcome

    def _late_ack(self, checkpoint_id: int) -> Ack:
        if checkpoint_id in self._discarded:
            # Its files were written after the folder was deleted, and made the folder again.
            self.effects.append(DiscardFolder(self._discarded[checkpoint_id]))
        return Ack.LATE if checkpoint_id < self._next_id else Ack.UNKNOWN

    def decline(self, task: TaskId, checkpoint_id: int, message: str, now_ms: int) -> None:
        """A subtask could not write its part."""
        if self._pending is not None and self._pending.id == checkpoint_id:
            self._abort(FailureReason.DECLINED, f"subtask {task}: {message}", now_ms)
            self._begin_next(now_ms)

    def manifest_written(self, checkpoint_id: int, now_ms: int) -> None:
        """The snapshot is complete, and a restart would find it."""
        pending = self._pending
        if pending is None or pending.id != checkpoint_id:
            return
        self._pending = None
        self._failures = 0
        if self._is_increment(pending.barrier.kind):
            self._base = max(self._base, checkpoint_id)
        self._log.put(pending.completed(now_ms))
        if pending.is_recoverable:
            self.effects.append(NotifyComplete(checkpoint_id))
        if pending.operation is not None:
            self._end_operation(
                replace(
                    self._operations[pending.operation.request.trigger_id],
                    status=OperationStatus.COMPLETED,
                    folder=pending.barrier.folder,
                )
            )
        if pending.barrier.then is not AfterBarrier.CONTINUE:
            self._close(FailureReason.JOB_ENDED)
        self._pause(now_ms)
        self._begin_next(now_ms)

    def storage_failed(self, checkpoint_id: int, message: str, now_ms: int) -> None:
        """The snapshot could not be recorded at its beginning, or its manifest not be written."""
        if self._pending is not None and self._pending.id == checkpoint_id:
            self._abort(FailureReason.STORAGE, message, now_ms)
            self._begin_next(now_ms)

    def end_of_input(self, task: TaskId, now_ms: int) -> None:
        """A subtask will get no more rows."""
        self._running.discard(task)
        if not self._running:
            self._due_ms = now_ms
            self._begin_next(now_ms)

    def close(self, reason: FailureReason, now_ms: int) -> None:
        """Let nothing new begin, because the attempt ends.

        A manifest on its way is not given up: its report still completes the snapshot.
        """
        if self._pending is not None and not self._pending.writing:
            self._abort(reason, None, now_ms)
        self._close(reason)

    def _begin_next(self, now_ms: int) -> None:
        """Decide what begins now, if anything."""
        if self._pending is not None or self._stopped:
            return
        if self._queue:
            self._begin_requested(self._queue.popleft(), now_ms)
        elif now_ms >= self._due_ms and not self._running:
            self._begin(SnapshotKind.CHECKPOINT, AfterBarrier.STOP, None, now_ms)
        elif now_ms >= self._due_ms and self._config.interval_ms is not None:
            self._begin(SnapshotKind.CHECKPOINT, AfterBarrier.CONTINUE, None, now_ms)

    def _begin_requested(self, trigger_id: str, now_ms: int) -> None:
        operation = replace(self._operations[trigger_id], checkpoint_id=self._next_id)
        self._put(operation)
        self._begin(operation.request.kind, operation.request.then, operation, now_ms)

    def _begin(
        self, kind: SnapshotKind, then: AfterBarrier, operation: Operation | None, now_ms: int
    ) -> None:
        barrier = Barrier(
            checkpoint_id=self._next_id,
            kind=kind,
            then=then,
            triggered_ms=now_ms,
            folder=self._folder(kind, operation),
            base=self._base if self._is_increment(kind) else None,
        )
        self._next_id += 1
        self._pending = PendingSnapshot(barrier, self._plan, operation)
        self._log.put(self._pending.stats())
        self._due_ms = now_ms + (self._config.interval_ms or 0)
        self.effects.append(SendBarrier(barrier, tuple(sources_of(self._plan))))

    def _is_increment(self, kind: SnapshotKind) -> bool:
        return self._config.incremental and kind is SnapshotKind.CHECKPOINT

    def _folder(self, kind: SnapshotKind, operation: Operation | None) -> str:
        if kind is SnapshotKind.CHECKPOINT or operation is None:
            return self._config.folder(self._next_id)
        request = operation.request
        directory = (request.directory or self._config.directory).rstrip("/")
        # With the id, so that no later request can ever write into a savepoint that is complete.
        return f"{directory}/savepoint-{self._job_id[:6]}-{self._next_id}-{request.trigger_id[:8]}"

    def _abort(self, reason: FailureReason, detail: str | None, now_ms: int) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        failure = _sentence(pending.barrier, reason, detail)
        self._log.put(pending.failed(reason, failure, now_ms))
        self.effects.append(NotifyAborted(pending.id))
        self.effects.append(DiscardFolder(pending.barrier.folder))
        self._discarded[pending.id] = pending.barrier.folder
        if pending.operation is not None:
            self._fail_operation(pending.operation.request.trigger_id, reason, failure)
        self._pause(now_ms)
        self._judge(pending.barrier, reason, failure, now_ms)

    def _judge(self, barrier: Barrier, reason: FailureReason, failure: str, now_ms: int) -> None:
        """Decide whether the job has to restart."""
        if not reason.counts:
            return
        if barrier.then is AfterBarrier.DRAIN:
            # Every window has fired early: only a restart makes the sources able to read on.
            self._fail_job(reason, failure)
        elif barrier.kind is SnapshotKind.CHECKPOINT:
            self._failures += 1
            if self._failures == 1:
                self._failing_since_ms = now_ms
            failing_ms = now_ms - self._failing_since_ms
            patient = failing_ms < self._config.patience_ms
            if self._failures > self._config.tolerable_failures and not patient:
                self._fail_job(reason, failure)

    def _fail_job(self, reason: FailureReason, failure: str) -> None:
        self.effects.append(FailJob(reason, failure))
        self._close(FailureReason.TASK_LOST)

    def _pause(self, now_ms: int) -> None:
        self._due_ms = max(self._due_ms, now_ms + self._config.min_pause_ms)

    def _close(self, reason: FailureReason) -> None:
        self._stopped = True
        while self._queue:
            self._fail_operation(self._queue.popleft(), reason, None)

    def _put(self, operation: Operation) -> None:
        self._operations[operation.request.trigger_id] = operation

    def _end_operation(self, operation: Operation) -> None:
        self._put(operation)
        self.effects.append(OperationEnded(operation))

    def _fail_operation(self, trigger_id: str, reason: FailureReason, failure: str | None) -> None:
        self._end_operation(
            replace(
                self._operations[trigger_id],
                status=OperationStatus.FAILED,
                reason=reason,
                failure=failure
                or f"{self._operations[trigger_id].request.kind} failed: {reason.sentence}",
            )
        )


def tasks_of(plan: Plan) -> list[TaskId]:
    """Every subtask of a job."""
    return [
        TaskId(vertex.id, subtask)
        for vertex in plan.vertices
        for subtask in range(vertex.parallelism)
    ]


def sources_of(plan: Plan) -> list[TaskId]:
    """Every subtask whose head is a source."""
    heads = {vertex.id for vertex in plan.sources}
    return [task for task in tasks_of(plan) if task.vertex in heads]


def _sentence(barrier: Barrier, reason: FailureReason, detail: str | None) -> str:
    rest = "" if detail is None else f": {detail}"
    return f"{barrier.kind} {barrier.checkpoint_id} failed, {reason.sentence}{rest}"
