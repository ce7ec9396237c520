"""The checkpoint log of a job that outlives the job manager.

    each checkpoint that ends ──▶ one row, and the summary ──▶ store ──▶ the next job manager

Guarantee  bounded: the last checkpoints, and the newest of each sort. A checkpoint that was under
           way when the job manager died is in no row; its successor begins a new one.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from engine.checkpoint.coordination.stats import (
    CheckpointCounts,
    CheckpointLog,
    CheckpointStats,
    CheckpointStatus,
    RestoredCheckpoint,
)
from engine.checkpoint.coordination.stats_json import (
    stats_from_json,
    stats_json,
    summary_from_json,
    summary_json,
)
from engine.cluster.store.store import Store
from engine.connectors.contract import Json
from engine.elements import SnapshotKind

NOTHING = summary_json(CheckpointCounts(), None)


class StoredLog(CheckpointLog):
    """A checkpoint log, kept in the store."""

    def __init__(self, job_id: str, store: Store) -> None:
        """Begin with what is there."""
        super().__init__()
        self._job_id = job_id
        self._store = store
        summary, *ended = store.checkpoints(job_id) or (NOTHING,)
        there = store.restorable(job_id)
        self.recall(
            (_marked(stats_from_json(_object(body)), there) for body in ended),
            *summary_from_json(_object(summary)),
        )

    def put(self, stats: CheckpointStats) -> None:
        """Take the newest statistics of a checkpoint."""
        super().put(stats)
        if stats.status is not CheckpointStatus.IN_PROGRESS:
            sort = f"{stats.kind} {stats.status}"
            row = stats.id, sort, stats_json(stats)
            self._store.put_checkpoints(self._job_id, row, self._summary())

    def restored(self, restored: RestoredCheckpoint) -> None:
        """An attempt started from a snapshot."""
        super().restored(restored)
        self._store.put_checkpoints(self._job_id, self._summary())

    def _summary(self) -> tuple[int, str, Json]:
        history = self.history()
        return 0, "summary", summary_json(history.counts, history.restored)


def _marked(stats: CheckpointStats, there: Set[int]) -> CheckpointStats:
    """With what became of its files since."""
    complete = stats.status is CheckpointStatus.COMPLETED
    gone = complete and stats.kind is SnapshotKind.CHECKPOINT and stats.id not in there
    return replace(stats, discarded=gone)


def _object(body: Json) -> dict[str, Json]:
    assert isinstance(body, dict)
    return body
