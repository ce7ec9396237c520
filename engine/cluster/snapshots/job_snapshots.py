"""The snapshots of one job, over all its attempts: carries out what the coordinator decides.

    coordinator ──effects──▶ barriers to workers, manifests to storage, rows to the store
                ◀── acks, declines, manifest_written, ticks ──

Guarantee  a snapshot is first written, then recorded, then committed: whatever dies in between, the
           next attempt either does not know it or restores it, and so commits it again or never.
Order      a savepoint that a job runs on from commits nothing: it belongs to a person, who may move
           it, so a restart could not begin there. What it staged is committed with the next
           checkpoint.
Waiting    what is asked for while the job starts or restarts is begun when it runs, if that is
           within the time that a snapshot may take; else it fails, for someone waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol, assert_never
from zlib import crc32

from engine.checkpoint.coordination import effects
from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.coordination.coordinator import Coordinator
from engine.checkpoint.coordination.effects import Operation, SnapshotRequest
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.requests import refusal
from engine.checkpoint.format.entries import SubtaskSnapshot
from engine.checkpoint.format.writer import write_manifest
from engine.checkpoint.storage.addresses import open_folder
from engine.clock import now_ms
from engine.cluster.background import Background
from engine.cluster.snapshots.checkpoint_log import StoredLog
from engine.cluster.snapshots.snapshot_files import SnapshotFiles
from engine.cluster.store.rows import SnapshotRow
from engine.cluster.store.store import Store
from engine.elements import AfterBarrier, Barrier
from engine.errors import HeadwaterError, StorageError
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan
from engine.runtime import control

log = logging.getLogger(__name__)

RESERVED = 10
"""Ids of checkpoints that are reserved at once, at least: each time is a flush, for which all jobs
wait. Those that are left when the job manager dies are never used."""


class SnapshotListener(Protocol):
    """The job, told what matters to it. Called on the event loop."""

    def send(self, message: control.Message) -> None:
        """Tell every worker of the present attempt."""

    def on_operation(self, operation: Operation) -> None:
        """A requested snapshot is complete or has failed."""

    def on_too_many_failures(self, reason: FailureReason, message: str) -> None:
        """Restart from the latest complete snapshot."""


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """How a job takes and keeps snapshots."""

    config: CheckpointConfig
    retained: int = 3


class JobSnapshots:
    """Takes the snapshots of one job."""

    def __init__(
        self,
        job_id: str,
        plan: Plan,
        settings: SnapshotSettings,
        store: Store,
        listener: SnapshotListener,
        next_id: int,
    ) -> None:
        self.log = StoredLog(job_id, store)
        self.settings = settings
        self._job_id = job_id
        self.plan = plan
        """At the parallelism of the next attempt."""
        self._store = store
        self._listener = listener
        self._next_id = next_id
        self._reserved = next_id
        """Below it no other job manager will use an id."""
        # Not all jobs that have started together wait for the disk at the same moment again.
        self._ahead = RESERVED + crc32(job_id.encode()) % RESERVED
        self._files = SnapshotFiles(job_id, settings.config.directory, store, self.log)
        self._coordinator: Coordinator | None = None
        self._waiting: dict[str, SnapshotRequest] = {}
        self._barriers: dict[int, Barrier] = {}
        """Of snapshots under way, by id."""
        self._patience: list[asyncio.TimerHandle] = []
        """One for each that waits, or has waited since the last attempt."""
        self._timer: asyncio.TimerHandle | None = None
        self._recording = Background()
        self._deleting = Background()

    # Of the job.

    def begin(self) -> None:
        """Every subtask of a new attempt runs: take snapshots, first those that wait."""
        self._coordinator = Coordinator(
            self._job_id,
            self.plan,
            self.settings.config,
            self.log,
            first_id=self._next_id,
            now_ms=now_ms(),
        )
        for request in self._no_longer_waiting():
            self._coordinator.request(request, now_ms())
        self._carry_out()

    async def sweep(self) -> None:
        """Delete checkpoints that a job manager had begun, and did not live to record."""
        await self._files.sweep(self._next_id)

    async def dispose(self) -> None:
        """Delete the checkpoints of a job that has ended and is forgotten."""
        await self._files.dispose()

    def request(self, request: SnapshotRequest, *, running: bool) -> None:
        """Ask for a snapshot; while the job does not run, it waits for a time until it does."""
        if self._coordinator is not None and running:
            self._coordinator.request(request, now_ms())
            self._carry_out()
        else:
            self._wait(request)

    def _wait(self, request: SnapshotRequest) -> None:
        self._waiting[request.trigger_id] = request
        patience_s = self.settings.config.timeout_ms / 1_000
        loop = asyncio.get_running_loop()
        self._patience.append(
            loop.call_later(patience_s, self._lose_patience, request.trigger_id, patience_s)
        )

    def _lose_patience(self, trigger_id: str, waited_s: float) -> None:
        request = self._waiting.pop(trigger_id, None)
        if request is not None:
            detail = f"waited {waited_s:g} s for it; ask again when it runs"
            self._refuse(request, FailureReason.NOT_RUNNING, detail)

    async def end(self, reason: FailureReason) -> None:
        """The attempt is over: begin nothing new, and wait for a manifest that is on its way.

        A restart does not wait for storage to delete what no attempt will read or write again.
        """
        coordinator, self._coordinator = self._coordinator, None
        if coordinator is not None:
            coordinator.close(reason, now_ms())
            self._carry_out(coordinator)
            for request in coordinator.withdraw():
                self._wait(request)
        await self._recording.done()
        if not reason.goes_on:
            await self._deleting.done()
        if self._timer is not None:
            self._timer.cancel()

    def give_up(self, reason: FailureReason, detail: str | None = None) -> None:
        """The job has ended: snapshots that still wait will never be taken."""
        for request in self._no_longer_waiting():
            self._refuse(request, reason, detail)

    def _no_longer_waiting(self) -> list[SnapshotRequest]:
        waiting, self._waiting = list(self._waiting.values()), {}
        for timer in self._patience:
            timer.cancel()  # else it would hold on to a job that is forgotten
        self._patience.clear()
        return waiting

    def _refuse(self, request: SnapshotRequest, reason: FailureReason, detail: str | None) -> None:
        failure = refusal(request, reason, detail)
        failed = effects.OperationStatus.FAILED
        self._listener.on_operation(Operation(request, failed, reason=reason, failure=failure))

    def on_message(self, message: control.Message) -> None:
        """A worker has stored, or could not store, its part; or it has read all its input."""
        coordinator = self._coordinator
        if coordinator is None:
            return
        match message:
            case control.Acknowledged(_, snapshot):
                assert isinstance(snapshot, dict)
                coordinator.ack(SubtaskSnapshot.from_json(snapshot), now_ms())
            case control.Declined(checkpoint_id, vertex, subtask, reason):
                coordinator.decline(TaskId(vertex, subtask), checkpoint_id, reason, now_ms())
            case control.EndOfInputReached(vertex, subtask):
                coordinator.end_of_input(TaskId(vertex, subtask), now_ms())
        self._carry_out()

    # Of the coordinator.

    def _carry_out(self, coordinator: Coordinator | None = None) -> None:
        """Do everything that the coordinator wants, then sleep until it has to decide again."""
        coordinator = coordinator or self._coordinator
        if coordinator is None:
            return
        while coordinator.effects:
            self._do(coordinator.effects.popleft(), coordinator)
        if coordinator is self._coordinator:
            self._sleep(coordinator)

    def _sleep(self, coordinator: Coordinator) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due_ms = coordinator.next_tick_ms
        if due_ms is not None:
            delay = max(0, due_ms - now_ms()) / 1000
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick, coordinator)

    def _tick(self, coordinator: Coordinator) -> None:
        if coordinator is self._coordinator:
            coordinator.tick(now_ms())
            self._carry_out()

    def _do(self, effect: effects.Effect, coordinator: Coordinator) -> None:
        match effect:
            case effects.SendBarrier(barrier):
                self._begin(barrier, coordinator)
            case effects.WriteManifest():
                self._recording.start(self._complete(effect, coordinator))
            case effects.NotifyComplete(checkpoint_id):
                self._listener.send(control.Completed(checkpoint_id))
            case effects.NotifyAborted(checkpoint_id):
                self._barriers.pop(checkpoint_id, None)
                self._files.abort(checkpoint_id)
                self._listener.send(control.Aborted(checkpoint_id))
            case effects.DiscardFolder(folder):
                self._deleting.start(self._files.discard(folder))
            case effects.OperationEnded(operation):
                self._listener.on_operation(operation)
            case effects.FailJob(reason, message):
                self._listener.on_too_many_failures(reason, message)
            case _:
                assert_never(effect)

    def _begin(self, barrier: Barrier, coordinator: Coordinator) -> None:
        """Send a barrier, once it is sure that no later snapshot will ever have its id."""
        self._next_id = barrier.checkpoint_id + 1
        try:
            if self._next_id > self._reserved:
                self._store.reserve_checkpoint(self._job_id, self._next_id + self._ahead)
                self._reserved = self._next_id + self._ahead
        except StorageError as error:
            coordinator.storage_failed(barrier.checkpoint_id, str(error), now_ms())
        else:
            self._send(barrier)

    def _send(self, barrier: Barrier) -> None:
        self._barriers[barrier.checkpoint_id] = barrier
        self._files.begin(barrier)
        self._listener.send(
            control.Trigger(
                barrier.checkpoint_id,
                barrier.kind,
                barrier.then,
                barrier.triggered_ms,
                barrier.folder,
                barrier.base,
            )
        )

    async def _complete(self, effect: effects.WriteManifest, coordinator: Coordinator) -> None:
        """Write, then record, then tell the coordinator, whose answer is to commit."""
        checkpoint_id, folder = effect.checkpoint_id, effect.folder
        try:
            await asyncio.to_thread(write_manifest, effect.manifest, open_folder(folder))
            self._store.add_snapshot(_row(self._job_id, self._barriers[checkpoint_id]))
            await self._store.on_disk()
        except HeadwaterError as error:
            coordinator.storage_failed(checkpoint_id, str(error), now_ms())
        else:
            self._barriers.pop(checkpoint_id)
            self._files.complete(effect.manifest)
            coordinator.manifest_written(checkpoint_id, now_ms())
            self._deleting.start(self._files.retire(self.settings.retained))
        self._carry_out(coordinator)


def _row(job_id: str, barrier: Barrier) -> SnapshotRow:
    return SnapshotRow(
        job_id,
        barrier.checkpoint_id,
        barrier.kind,
        barrier.folder,
        now_ms(),
        ends_job=barrier.then in (AfterBarrier.STOP, AfterBarrier.DRAIN),
    )
