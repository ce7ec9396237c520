"""The checkpoint coordinator of one attempt of a job: a state machine without I/O or clock.

    each snapshot:  begun --every ack--> acknowledged --its turn--> writing --written--> complete
                      |                       |                        |
                decline, timeout      timeout, subsumed          storage fails
                      +-----------------------+---> aborted <----------+

    complete --> NotifyComplete --> sinks commit; after STOP or DRAIN the subtasks end
                 (not after a savepoint that the job runs on from: see `is_recoverable`)

At a time   as many checkpoints as configured, and one savepoint beside them. A snapshot that ends
            the job waits for a savepoint under way; while it is under way nothing else begins.
Subsumed    a complete checkpoint ends the pending ones that are older: a restart would not choose
            them, and what they staged is in it. Savepoints belong to people, and are not ended.
Order       manifests are written one after another, the oldest first: what is recorded last is
            newest. Ids only grow, over all attempts of a job: pass `first_id`.
End         when every subtask has reported the end of its input, one final checkpoint with `then`
            STOP commits what is left.
Units       all times are epoch ms and are passed in.
Errors      outcomes are values: Ack, FailureReason. Too many failures in a row: FailJob.
Source      Flink's CheckpointCoordinator and CheckpointRequestDecider.
"""

from __future__ import annotations

from collections import deque

from engine.checkpoint.coordination.barriers import Barriers
from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.coordination.decider import may_begin
from engine.checkpoint.coordination.effects import (
    DiscardFolder,
    Effect,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    Operation,
    SendBarrier,
    SnapshotRequest,
    WriteManifest,
)
from engine.checkpoint.coordination.failure import Ack, FailureReason
from engine.checkpoint.coordination.pending import PendingSnapshot
from engine.checkpoint.coordination.requests import Requests
from engine.checkpoint.coordination.stats import CheckpointLog
from engine.checkpoint.coordination.tolerance import Tolerance
from engine.checkpoint.format.entries import SubtaskSnapshot
from engine.elements import AfterBarrier, Barrier, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan
from engine.graph.tasks import sources_of, tasks_of

DISCARDED = 100
"""Aborted snapshots whose folder is known: acknowledgements that come still later are lost ones."""


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
        self._plan_hash = plan.hash
        self._config = config
        self._log = log
        self._barriers = Barriers(job_id, config, first_id)
        self._requests = Requests(self.effects)
        self._pending: dict[int, PendingSnapshot] = {}
        """By id, so oldest first."""
        self._running = set(tasks_of(plan))
        self._tolerance = Tolerance(config)
        self._due_ms = now_ms + (config.interval_ms or 0)
        self._closed: tuple[FailureReason, str | None] | None = None
        self._discarded: dict[int, str] = {}
        """Folders of aborted snapshots, by id."""

    def __repr__(self) -> str:
        pending = ", ".join(map(repr, self._pending.values())) or "nothing"
        return f"Coordinator({self._plan.name}, {pending} pending, {len(self._requests)} queued)"

    @property
    def next_id(self) -> int:
        """The id of the next snapshot: `first_id` of the next attempt."""
        return self._barriers.next_id

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more begins: the job ends with what is complete, or fails."""
        return self._closed is not None

    @property
    def is_writing(self) -> bool:
        """Whether a manifest is on its way: wait for its report before choosing what to restore."""
        return any(pending.writing for pending in self._pending.values())

    @property
    def next_tick_ms(self) -> int | None:
        """When `tick` has something to decide; None: not before another call."""
        times = [self._expiry_ms(pending) for pending in self._expiring()]
        if self._next_periodic() is not None:
            times.append(self._due_ms)
        return min(times, default=None)

    def tick(self, now_ms: int) -> None:
        """Time has passed: expire what takes too long, begin what is due."""
        for pending in self._expiring():
            if now_ms >= self._expiry_ms(pending):
                self._abort(pending, FailureReason.EXPIRED, self._lateness(pending), now_ms)
        self._begin_next(now_ms)

    def request(self, request: SnapshotRequest, now_ms: int) -> Operation:
        """Ask for a snapshot; asking again with the same trigger id changes nothing."""
        known = self._requests.find(request.trigger_id)
        if known is not None:
            return known
        operation = self._requests.add(request)
        if self._closed is not None:
            self._close(*self._closed)
        self._begin_next(now_ms)
        return self._requests.find(request.trigger_id) or operation

    def operation(self, trigger_id: str) -> Operation | None:
        """What became of a request."""
        return self._requests.find(trigger_id)

    def ack(self, snapshot: SubtaskSnapshot, now_ms: int) -> Ack:
        """A subtask has written its part."""
        pending = self._pending.get(snapshot.checkpoint_id)
        if pending is None:
            self._discard_again(snapshot.checkpoint_id)
            return Ack.LATE if snapshot.checkpoint_id < self.next_id else Ack.UNKNOWN
        outcome = pending.ack(snapshot, now_ms)
        if outcome is Ack.ACCEPTED:
            self._log.put(pending.stats())
            self._write_next(now_ms)
        return outcome

    def decline(self, task: TaskId, checkpoint_id: int, message: str, now_ms: int) -> None:
        """A subtask could not write its part."""
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            self._discard_again(checkpoint_id)
        elif not pending.writing:
            self._abort(
                pending, FailureReason.DECLINED, f"{pending.name_of(task)}: {message}", now_ms
            )
            self._begin_next(now_ms)

    def manifest_written(self, checkpoint_id: int, now_ms: int) -> None:
        """The snapshot is complete, and a restart would find it."""
        pending = self._pending.pop(checkpoint_id, None)
        if pending is None:
            return
        self._barriers.completed(pending.barrier)
        self._log.put(pending.completed(now_ms))
        if pending.is_recoverable:
            self._tolerance.succeeded()
            self.effects.append(NotifyComplete(checkpoint_id))
        if pending.operation is not None:
            self._requests.complete(pending.operation, pending.barrier.folder)
        if pending.is_recoverable:
            self._subsume(pending, now_ms)
        if pending.ends_job:
            self._close(*_end_of(pending))
        self._pause(now_ms)
        self._write_next(now_ms)
        self._begin_next(now_ms)

    def storage_failed(self, checkpoint_id: int, message: str, now_ms: int) -> None:
        """The snapshot could not be recorded at its beginning, or its manifest not be written."""
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            self._abort(pending, FailureReason.STORAGE, message, now_ms)
            self._write_next(now_ms)
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
        for pending in self._expiring():
            self._abort(pending, reason, None, now_ms)
        self._close(reason)

    def withdraw(self) -> list[SnapshotRequest]:
        """Give back the requests that were not begun, for the next attempt of the job."""
        return self._requests.withdraw()

    # What begins, and when.

    def _begin_next(self, now_ms: int) -> None:
        """Begin whatever may begin now."""
        while self._begin_one(now_ms):
            pass

    def _begin_one(self, now_ms: int) -> bool:
        if self._closed is not None:
            return False
        operation = self._requests.next(
            lambda request: self._is_room_for(request.kind, request.then), self.next_id
        )
        if operation is not None:
            self._begin(self._barriers.make(operation.request, now_ms), operation)
            return True
        then = self._next_periodic()
        if then is None or now_ms < self._due_ms:
            return False
        unasked = SnapshotRequest("", SnapshotKind.CHECKPOINT, then)
        self._begin(self._barriers.make(unasked, now_ms))
        return True

    def _next_periodic(self) -> AfterBarrier | None:
        """What follows the next checkpoint that nobody asks for; None when there is none."""
        if self._closed is not None or (self._config.interval_ms is None and self._running):
            return None
        then = AfterBarrier.CONTINUE if self._running else AfterBarrier.STOP
        return then if self._is_room_for(SnapshotKind.CHECKPOINT, then) else None

    def _is_room_for(self, kind: SnapshotKind, then: AfterBarrier) -> bool:
        under_way = [pending.barrier for pending in self._pending.values()]
        return may_begin(kind, then, under_way, self._config.concurrent)

    def _begin(self, barrier: Barrier, operation: Operation | None = None) -> None:
        pending = PendingSnapshot(barrier, self._plan, operation)
        self._pending[pending.id] = pending
        self._log.put(pending.stats())
        if barrier.kind is SnapshotKind.CHECKPOINT:
            self._due_ms = barrier.triggered_ms + (self._config.interval_ms or 0)
        self.effects.append(SendBarrier(barrier, tuple(sources_of(self._plan))))

    # How each ends.

    def _write_next(self, now_ms: int) -> None:
        """Have the oldest manifest written that has all its parts, unless one is on its way."""
        ready = next((each for each in self._pending.values() if each.is_acknowledged), None)
        if ready is None or self.is_writing:
            return
        ready.writing = True
        manifest = ready.manifest(self._job_id, self._plan_hash, now_ms)
        self.effects.append(
            WriteManifest(ready.id, ready.barrier.folder, manifest, ready.is_recoverable)
        )

    def _subsume(self, newer: PendingSnapshot, now_ms: int) -> None:
        """End the older checkpoints that are under way."""
        for pending in list(self._pending.values()):
            if pending.id < newer.id and pending.barrier.kind is SnapshotKind.CHECKPOINT:
                self._abort(pending, FailureReason.SUBSUMED, newer.name, now_ms)

    def _abort(
        self, pending: PendingSnapshot, reason: FailureReason, detail: str | None, now_ms: int
    ) -> None:
        del self._pending[pending.id]
        failure = pending.failure(reason, detail)
        self._log.put(pending.failed(reason, failure, now_ms))
        self.effects.append(NotifyAborted(pending.id))
        self._discard(pending)
        if pending.operation is not None:
            self._requests.fail(pending.operation, reason, failure)
        self._pause(now_ms)
        if reason.counts and self._is_too_much(pending, now_ms):
            self.effects.append(FailJob(reason, failure))
            self._close(FailureReason.TASK_LOST)

    def _discard(self, pending: PendingSnapshot) -> None:
        folder = pending.barrier.folder
        self.effects.append(DiscardFolder(folder))
        self._discarded[pending.id] = folder
        if len(self._discarded) > DISCARDED:
            del self._discarded[next(iter(self._discarded))]

    def _discard_again(self, checkpoint_id: int) -> None:
        """Files that were written after the folder was deleted have made it again."""
        if checkpoint_id in self._discarded:
            self.effects.append(DiscardFolder(self._discarded[checkpoint_id]))

    def _is_too_much(self, pending: PendingSnapshot, now_ms: int) -> bool:
        """Whether the job has to restart because of a snapshot that failed."""
        if self._closed is not None:
            return False
        if pending.barrier.then is AfterBarrier.DRAIN:
            # Every window has fired early: only a restart makes the sources able to read on.
            return True
        is_checkpoint = pending.barrier.kind is SnapshotKind.CHECKPOINT
        return is_checkpoint and self._tolerance.failed(now_ms)

    def _expiring(self) -> list[PendingSnapshot]:
        """Those that are not being recorded, which would be too late to take back."""
        return [pending for pending in self._pending.values() if not pending.writing]

    def _expiry_ms(self, pending: PendingSnapshot) -> int:
        return pending.barrier.triggered_ms + self._config.timeout_ms

    def _lateness(self, pending: PendingSnapshot) -> str:
        seconds = f"{self._config.timeout_ms / 1_000:g} s"
        missing = ", ".join(pending.missing()[:3])
        if missing:
            return f"{missing} did not within {seconds}"
        return f"storage was busy with an older one for {seconds}"

    def _pause(self, now_ms: int) -> None:
        self._due_ms = max(self._due_ms, now_ms + self._config.min_pause_ms)

    def _close(self, reason: FailureReason, detail: str | None = None) -> None:
        if self._closed is None or self._closed[0].goes_on:
            self._closed = reason, detail
        if not self._closed[0].goes_on:
            self._requests.fail_waiting(*self._closed)


def _end_of(last: PendingSnapshot) -> tuple[FailureReason, str | None]:
    """Why nothing follows a snapshot that ends the job, or its attempt."""
    if last.barrier.then is AfterBarrier.SUSPEND:
        return FailureReason.RESCALED, None
    if last.barrier.kind is SnapshotKind.CHECKPOINT:
        return FailureReason.INPUT_ENDED, None
    return FailureReason.JOB_STOPPED, f"its savepoint is {last.barrier.folder}"
