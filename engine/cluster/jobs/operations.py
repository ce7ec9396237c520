"""Long operations that clients poll by trigger id: savepoints, stops, checkpoints, disposals.

    begin(what, trigger id) ─▶ open ─▶ done: location | checkpoint id | failure

Guarantee  the same trigger id is the same operation, also after the job manager was restarted.
           An operation that a dead job manager left open is reported as failed, but for a stop
           whose savepoint was complete: that ends when its job has finished.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

from engine.checkpoint.coordination.effects import Operation, OperationStatus
from engine.clock import now_ms
from engine.cluster.store.rows import OperationRow
from engine.cluster.store.store import Store
from engine.elements import AfterBarrier, SnapshotKind
from engine.rest.errors import operation_not_found
from engine.rest.model.jobs import JobStatus
from engine.rest.model.operations import TriggerStatus


class What(StrEnum):
    """Sorts of operations."""

    SAVEPOINT = "savepoint"
    CANCEL = "savepoint before cancel"
    STOP = "stop"
    CHECKPOINT = "checkpoint"
    RESCALE = "rescale"
    DISPOSAL = "disposal"


class Operations:
    """Every long operation, in the store."""

    def __init__(self, store: Store, cancel: Callable[[str], None]) -> None:
        self._store = store
        self._cancel = cancel

    def begin(self, what: What, job_id: str | None, trigger_id: str | None) -> tuple[str, bool]:
        """Return the operation's trigger id, and whether it is new. Raises StorageError."""
        trigger_id = trigger_id or secrets.token_hex(16)
        if self._store.operation(trigger_id) is not None:
            return trigger_id, False
        self._store.add_operation(OperationRow(trigger_id, job_id, what, now_ms()))
        return trigger_id, True

    def finish(
        self,
        trigger_id: str,
        *,
        location: str | None = None,
        checkpoint_id: int | None = None,
        failure: str | None = None,
    ) -> None:
        """Record how an operation ended."""
        row = self._store.operation(trigger_id)
        if row is not None and not row.done:
            self._store.put_operation(
                replace(
                    row, done=True, location=location, checkpoint_id=checkpoint_id, failure=failure
                )
            )

    def on_snapshot(self, operation: Operation) -> None:
        """A requested snapshot is complete or has failed."""
        trigger_id = operation.request.trigger_id
        if operation.status is OperationStatus.FAILED:
            self.finish(trigger_id, failure=operation.failure)
        elif operation.request.then is AfterBarrier.CONTINUE:
            self.finish(
                trigger_id, location=operation.folder, checkpoint_id=operation.checkpoint_id
            )
            row = self._store.operation(trigger_id)
            if row is not None and row.what == What.CANCEL and row.job_id is not None:
                self._cancel(row.job_id)
        # A stop is over when its job is: see `on_end`.

    def on_end(self, job_id: str, status: JobStatus) -> None:
        """A job has ended: so have the stops that ended it, or that came too late to."""
        if status is JobStatus.FINISHED:
            self._on_finished(job_id)
        for row in self._store.open_operations():
            if row.job_id == job_id:
                self.finish(row.trigger_id, failure=self._overtaken(row, status))

    def _overtaken(self, row: OperationRow, status: JobStatus) -> str:
        """Why an operation comes to nothing, and where its savepoint is, if there is one."""
        point = self._store.recovery_point(row.job_id or "")
        if row.what == What.STOP and point is not None and point.ends_job:
            return (
                f"{row.what} was overtaken: the job is {status}; its savepoint {point.path} is "
                "complete, start a job from it to commit its output"
            )
        return f"{row.what} was given up: the job is {status}"

    def _on_finished(self, job_id: str) -> None:
        point = self._store.recovery_point(job_id)
        stopped = point is not None and point.kind is SnapshotKind.SAVEPOINT
        for row in self._store.open_operations():
            if row.job_id == job_id and row.what == What.STOP and point is not None and stopped:
                self.finish(row.trigger_id, location=point.path, checkpoint_id=point.checkpoint_id)

    def status(self, trigger_id: str, what: str, job_id: str | None) -> TriggerStatus:
        """Where an operation stands. Raises NotFound; `what` is for its message."""
        row = self._store.operation(trigger_id)
        if row is None or row.job_id != job_id:
            raise operation_not_found(what, trigger_id)
        return TriggerStatus(row.done, row.location, row.checkpoint_id, row.failure)

    def close_left_over(self) -> None:
        """Fail what an earlier job manager left open and cannot come to an end."""
        for row in self._store.open_operations():
            if row.what == What.RESCALE:
                continue  # its job goes on with it: see `rescale.py`
            point = self._store.recovery_point(row.job_id) if row.job_id else None
            if not (row.what == What.STOP and point is not None and point.ends_job):
                failure = f"{row.what} was given up: the job manager restarted; ask for it again"
                self.finish(row.trigger_id, failure=failure)
