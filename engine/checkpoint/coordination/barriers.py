"""The barriers of one attempt: what each snapshot is called, where it goes, what it may build on.

ids       only grow, over all attempts of a job
folder    <dir>/chk-<id>, or savepoint-<job>-<id>-<trigger> where its owner wants it
base      the newest complete checkpoint of this attempt; see DESIGN.md, layers
"""

from __future__ import annotations

from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.elements import Barrier, SnapshotKind


class Barriers:
    """Makes them, one after another."""

    def __init__(self, job_id: str, config: CheckpointConfig, first_id: int) -> None:
        self.next_id = first_id
        """Of the next snapshot."""
        self._job_id = job_id
        self._config = config
        self._base = 0

    def make(self, request: SnapshotRequest, now_ms: int) -> Barrier:
        """That of the next snapshot."""
        barrier = Barrier(
            checkpoint_id=self.next_id,
            kind=request.kind,
            then=request.then,
            triggered_ms=now_ms,
            folder=self._folder(request),
            base=self._base_for(request),
        )
        self.next_id += 1
        return barrier

    def completed(self, barrier: Barrier) -> None:
        """Its snapshot is complete: later ones may build on it."""
        if barrier.base is not None:
            self._base = max(self._base, barrier.checkpoint_id)

    def _base_for(self, request: SnapshotRequest) -> int | None:
        if request.kind is SnapshotKind.SAVEPOINT or not self._config.incremental:
            return None
        return 0 if request.full else self._base

    def _folder(self, request: SnapshotRequest) -> str:
        if request.kind is SnapshotKind.CHECKPOINT:
            return self._config.folder(self.next_id)
        directory = (request.directory or self._config.directory).rstrip("/")
        # With the id, so that no later request can ever write into a savepoint that is complete.
        return f"{directory}/savepoint-{self._job_id[:6]}-{self.next_id}-{request.trigger_id[:8]}"
