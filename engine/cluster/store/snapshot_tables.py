"""The tables of snapshots: which there are, and what became of each checkpoint.

snapshots     completed checkpoints and savepoints
checkpoints   statistics of the last checkpoints, for people
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence

from engine.checkpoint.coordination.stats import REMEMBERED
from engine.cluster.store.ledger import Ledger
from engine.cluster.store.rows import SnapshotRow, snapshot_of, snapshot_write
from engine.connectors.contract import Json
from engine.elements import SnapshotKind

_FORGET_SNAPSHOT = "DELETE FROM snapshots WHERE job_id = ? AND checkpoint_id = ?"
_PUT_CHECKPOINT = "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)"
_FORGET_CHECKPOINTS = """
DELETE FROM checkpoints WHERE job_id = ? AND checkpoint_id NOT IN
    (SELECT checkpoint_id FROM checkpoints WHERE job_id = ? ORDER BY checkpoint_id DESC LIMIT ?)
AND checkpoint_id NOT IN (SELECT max(checkpoint_id) FROM checkpoints WHERE job_id = ? GROUP BY sort)
"""


class SnapshotTables(Ledger):
    """Snapshots and their statistics."""

    # Snapshots.

    def add_snapshot(self, row: SnapshotRow) -> None:
        """Record a completed snapshot, for good after `on_disk`. Raises StorageError."""
        self._written(*snapshot_write(row))

    def claim(self, row: SnapshotRow) -> None:
        """Make a snapshot from elsewhere a checkpoint of this job; no other has it any more.

        Raises StorageError.
        """
        self._now("DELETE FROM snapshots WHERE path = ? AND job_id != ?", (row.path, row.job_id))
        self._now(*snapshot_write(row))

    def recovery_point(self, job_id: str) -> SnapshotRow | None:
        """The newest snapshot that a failed job starts again from."""
        rows = self._db.execute(
            "SELECT * FROM snapshots WHERE job_id = ? AND NOT discarded"
            " ORDER BY checkpoint_id DESC",
            (job_id,),
        )
        return next((row for row in map(snapshot_of, rows) if row.recoverable), None)

    def has_snapshots_below(self, folder: str, but_of: str) -> bool:
        """Whether a job other than `but_of` has a snapshot in a folder: it has claimed it."""
        beginning = f"{folder.rstrip('/')}/"
        row = self._one(
            "SELECT 1 FROM snapshots WHERE job_id != ? AND substr(path, 1, ?) = ? LIMIT 1",
            but_of, len(beginning), beginning,
        )  # fmt: skip
        return row is not None

    def snapshot_paths(self, job_id: str) -> set[str]:
        """Where the snapshots of a job lie, as far as their files may still be there."""
        rows = self._db.execute("SELECT * FROM snapshots WHERE job_id = ?", (job_id,))
        return {row.path for row in self._not_forgotten(rows)}

    def replaced_checkpoints(self, job_id: str, retained: int) -> Sequence[SnapshotRow]:
        """Checkpoints, never savepoints, older than the newest `retained` ones.

        With those that were discarded before, whose files may still be there.
        """
        rows = self._db.execute(
            "SELECT * FROM snapshots WHERE job_id = ? AND kind = ? ORDER BY checkpoint_id DESC",
            (job_id, SnapshotKind.CHECKPOINT),
        )
        return self._not_forgotten(rows)[retained:]

    def _not_forgotten(self, rows: Iterable[sqlite3.Row]) -> list[SnapshotRow]:
        """Without those whose end waits to be written."""
        forgotten = {values for statement, values in self._later if statement == _FORGET_SNAPSHOT}
        found = map(snapshot_of, rows)
        return [row for row in found if (row.job_id, row.checkpoint_id) not in forgotten]

    def discard(self, job_id: str, checkpoint_id: int) -> None:
        """Record that a checkpoint's files will be deleted after `on_disk`: do not restore it."""
        self._written(
            "UPDATE snapshots SET discarded = 1 WHERE job_id = ? AND checkpoint_id = ?",
            (job_id, checkpoint_id),
        )

    def forget_snapshot(self, job_id: str, checkpoint_id: int) -> None:
        """The files of a snapshot are deleted. If that is forgotten, they are deleted again."""
        self._with_next((_FORGET_SNAPSHOT, (job_id, checkpoint_id)))

    # Statistics of checkpoints.

    def put_checkpoints(self, job_id: str, *rows: tuple[int, str, Json]) -> None:
        """Record what became of checkpoints: number, sort, body.

        The newest ones are kept, and of older ones the newest of each sort.
        """
        self._with_next(
            *((_PUT_CHECKPOINT, (job_id, id_, sort, json.dumps(body))) for id_, sort, body in rows),
            (_FORGET_CHECKPOINTS, (job_id, job_id, REMEMBERED, job_id)),
        )

    def checkpoints(self, job_id: str) -> Sequence[Json]:
        """What was recorded, oldest first."""
        self.catch_up()
        rows = self._db.execute(
            "SELECT body FROM checkpoints WHERE job_id = ? ORDER BY checkpoint_id", (job_id,)
        )
        return [json.loads(row[0]) for row in rows]

    def restorable(self, job_id: str) -> set[int]:
        """Snapshots whose files are there, as far as the engine knows."""
        rows = self._db.execute(
            "SELECT checkpoint_id FROM snapshots WHERE job_id = ? AND NOT discarded", (job_id,)
        )
        return {int(row[0]) for row in rows}
