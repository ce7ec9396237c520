"""The snapshots that were asked for: those that wait for their turn, and what became of each.

    add ──▶ waiting ──next──▶ begun ──complete | fail──▶ ended, told by OperationEnded
               └──withdraw──▶ the next attempt

Order    first come, first served, among those that may begin now.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from engine.checkpoint.coordination.effects import (
    Effect,
    Operation,
    OperationEnded,
    OperationStatus,
    SnapshotRequest,
)
from engine.checkpoint.coordination.failure import FailureReason

REMEMBERED = 100
"""Ended requests that are still known: the job manager's store knows all of them."""


class Requests:
    """Requests of one attempt, by trigger id."""

    def __init__(self, effects: deque[Effect]) -> None:
        self._effects = effects
        self._known: dict[str, Operation] = {}
        self._waiting: list[str] = []
        self._ended: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def find(self, trigger_id: str) -> Operation | None:
        """What became of a request."""
        return self._known.get(trigger_id)

    def add(self, request: SnapshotRequest) -> Operation:
        """Let a request wait for its turn."""
        self._waiting.append(request.trigger_id)
        return self._put(Operation(request))

    def next(self, may_begin: Callable[[SnapshotRequest], bool], id_: int) -> Operation | None:
        """Take the first that may begin, as the snapshot with this id."""
        for trigger_id in self._waiting:
            operation = self._known[trigger_id]
            if may_begin(operation.request):
                self._waiting.remove(trigger_id)
                return self._put(replace(operation, checkpoint_id=id_))
        return None

    def complete(self, operation: Operation, folder: str) -> None:
        """A requested snapshot is complete."""
        self._end(replace(operation, status=OperationStatus.COMPLETED, folder=folder))

    def fail(self, operation: Operation, reason: FailureReason, failure: str) -> None:
        """A requested snapshot came to nothing."""
        self._end(replace(operation, status=OperationStatus.FAILED, reason=reason, failure=failure))

    def withdraw(self) -> list[SnapshotRequest]:
        """Forget those that wait, as if they had not been asked for."""
        waiting, self._waiting = self._waiting, []
        return [self._known.pop(trigger_id).request for trigger_id in waiting]

    def fail_waiting(self, reason: FailureReason, detail: str | None = None) -> None:
        """Give up all that wait."""
        waiting, self._waiting = self._waiting, []
        for trigger_id in waiting:
            operation = self._known[trigger_id]
            self.fail(operation, reason, refusal(operation.request, reason, detail))

    def _put(self, operation: Operation) -> Operation:
        self._known[operation.request.trigger_id] = operation
        return operation

    def _end(self, operation: Operation) -> None:
        self._put(operation)
        self._effects.append(OperationEnded(operation))
        self._ended.append(operation.request.trigger_id)
        if len(self._ended) > REMEMBERED:
            self._known.pop(self._ended.popleft(), None)


def refusal(request: SnapshotRequest, reason: FailureReason, detail: str | None = None) -> str:
    """Why a snapshot was not even begun."""
    rest = "" if detail is None else f": {detail}"
    return f"{request.kind} failed: {reason.sentence}{rest}"
