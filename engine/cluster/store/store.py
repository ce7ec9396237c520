"""The job manager's memory: what must survive its death, in one SQLite file.

    artifacts     uploaded job files
    jobs          what was submitted, and the state each job is in
    attempts      each deployment of a job
    processes     workers and task managers that may still run (for the one who comes after a crash)
    snapshots     completed checkpoints and savepoints
    operations    savepoints, stops, checkpoints and disposals that clients poll by trigger id
    failures      why attempts failed
    checkpoints   statistics of the last checkpoints, for people

Guarantee  a write is on disk when its method returns (WAL, synchronous=FULL), but for what each
           checkpoint writes. What rests on that waits for `on_disk`, together with other jobs: a
           checkpoint is recorded before any sink is told to commit it, even if the machine loses
           power. What it leaves for people waits for the next write, a second at most.
Order      one thread, the event loop's: each call is one short transaction.
Errors     when the disk is full, StorageError from whatever a promise rests on: the caller gives
           that one thing up. What only describes the past is kept in memory and written, in order,
           as soon as there is room: a job must not stop because its diary cannot be written.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from engine.checkpoint.coordination.stats import REMEMBERED
from engine.cluster.store.flushing import Flushing
from engine.cluster.store.schema import connect
from engine.connectors.contract import Json
from engine.elements import SnapshotKind
from engine.errors import StorageError
from engine.rest.model.cluster import Artifact
from engine.rest.model.jobs import JobStatus

log = logging.getLogger(__name__)

FAILURES_KEPT = 100
_FORGET_SNAPSHOT = "DELETE FROM snapshots WHERE job_id = ? AND checkpoint_id = ?"
_PUT_CHECKPOINT = "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)"
_FORGET_CHECKPOINTS = """
DELETE FROM checkpoints WHERE job_id = ? AND checkpoint_id NOT IN
    (SELECT checkpoint_id FROM checkpoints WHERE job_id = ? ORDER BY checkpoint_id DESC LIMIT ?)
AND checkpoint_id NOT IN (SELECT max(checkpoint_id) FROM checkpoints WHERE job_id = ? GROUP BY sort)
"""
ATTEMPTS_KEPT = 100
FREE_PAGES = 256
"""A megabyte: less is soon used again, and needs no work."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it was submitted, and where it stands."""

    job_id: str
    name: str
    status: JobStatus
    entered_ms: Mapping[JobStatus, int]
    submitted_ms: int
    folder: str
    """Holds `graph.pkl` and `plan.json`."""
    code: str
    """Folder of the artifact."""
    arguments: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    restore_path: str | None = None
    """The snapshot it was submitted with."""
    next_checkpoint_id: int = 1
    python: str = ""
    """Interpreter of its build step and workers; empty: the one that runs the engine."""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A completed checkpoint or savepoint."""

    job_id: str
    checkpoint_id: int
    kind: SnapshotKind
    path: str
    completed_ms: int
    ends_job: bool = False
    """Nothing is left to do but to commit it: the job stops with it, or its input has ended."""
    discarded: bool = False

    @property
    def recoverable(self) -> bool:
        """Whether a failed job starts again from here.

        A savepoint that a job runs on from is not: it belongs to a person, who may move it.
        """
        return self.kind is SnapshotKind.CHECKPOINT or self.ends_job


@dataclass(frozen=True, slots=True)
class OperationRow:
    """A long operation, as its client polls it."""

    trigger_id: str
    job_id: str | None
    what: str
    """savepoint, stop, checkpoint or disposal."""
    requested_ms: int
    done: bool = False
    location: str | None = None
    checkpoint_id: int | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process that was started: its id alone could be another process by now."""

    pid: int
    created: float
    what: str


class Store:
    """All tables. Owned by one thread."""

    def __init__(self, path: Path) -> None:
        """Open the file, or begin one. Raises ConfigError."""
        self._db = connect(path)
        self._db.row_factory = sqlite3.Row
        self._path = path
        self._flushing = Flushing(path)
        self._later: deque[tuple[str, tuple[object, ...]]] = deque()
        """Writes for which there was no room yet."""

    def close(self) -> None:
        """Close the file."""
        self.catch_up()
        self._db.close()

    def catch_up(self) -> None:
        """Write what there was no room for, if there is now. To be called now and then."""
        try:
            self._write_late()
        except sqlite3.Error as error:
            log.debug("%s", error)

    def give_room_back(self) -> None:
        """Return pages that rows have left to the disk, if there are many."""
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        if free > FREE_PAGES:
            with suppress(sqlite3.OperationalError):  # it takes room in the journal first
                self._db.execute("PRAGMA incremental_vacuum").fetchall()

    def _now(self, statement: str, values: tuple[object, ...]) -> None:
        """Write what a promise rests on, and what waits for it. Raises StorageError."""
        try:
            self._write_late((statement, values))
        except sqlite3.OperationalError as error:
            msg = f"store {self._path} cannot be written: {error}; make room on its disk"
            raise StorageError(msg) from error

    def _written(self, statement: str, values: tuple[object, ...]) -> None:
        """Write what a promise rests on that is given after `on_disk`. Raises StorageError.

        It survives a kill at once, but a loss of power only then.
        """
        self._db.execute("PRAGMA synchronous=NORMAL")
        try:
            self._now(statement, values)
        finally:
            self._db.execute("PRAGMA synchronous=FULL")

    async def on_disk(self) -> None:
        """Wait, with others, until everything written survives a loss of power.

        Raises StorageError.
        """
        await self._flushing.on_disk()

    def _soon(self, statement: str, values: tuple[object, ...]) -> None:
        """Write at once if there is room, else later."""
        self._all_soon((statement, values))

    def _with_next(self, *writes: tuple[str, tuple[object, ...]]) -> None:
        """Write all of these with whatever is written next: they are not worth a flush."""
        self._later.extend(writes)

    def _all_soon(self, *writes: tuple[str, tuple[object, ...]]) -> None:
        """Write all of these together."""
        self._later.extend(writes)
        try:
            self._write_late()
        except sqlite3.OperationalError as error:
            log.warning("store %s: %d writes wait: %s", self._path, len(self._later), error)

    def _write_late(self, *promises: tuple[str, tuple[object, ...]]) -> None:
        """Write all that waits in one transaction, which costs one flush."""
        if not self._later and not promises:
            return
        self._db.execute("BEGIN")
        try:
            for write in (*self._later, *promises):
                self._write_past(*write)
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._later.clear()

    def _write_past(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._db.execute(statement, values)
        except sqlite3.IntegrityError as error:  # e.g. its job was forgotten: nobody will ask
            log.warning("store %s: what is past was not written: %s", self._path, error)

    # Artifacts.

    def add_artifact(self, artifact: Artifact) -> None:
        """Remember an uploaded file; the same content and name again only renews its date."""
        self._now(
            "INSERT OR REPLACE INTO artifacts VALUES (?, ?, ?, ?)",
            (artifact.id, artifact.filename, artifact.uploaded_ms, artifact.size_bytes),
        )

    def artifacts(self) -> Sequence[Artifact]:
        """Uploaded files, newest first."""
        rows = self._db.execute("SELECT * FROM artifacts ORDER BY uploaded_ms DESC, artifact_id")
        return [Artifact(*row) for row in rows]

    def artifact(self, artifact_id: str) -> Artifact | None:
        """One uploaded file."""
        row = self._one("SELECT * FROM artifacts WHERE artifact_id = ?", artifact_id)
        return Artifact(*row) if row else None

    def forget_artifact(self, artifact_id: str) -> None:
        """Remove an uploaded file from the list."""
        self._now("DELETE FROM artifacts WHERE artifact_id = ?", (artifact_id,))

    # Jobs and attempts.

    def add_job(self, job: JobRow) -> None:
        """Remember a submitted job."""
        self._now(
            "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (job.job_id, job.name, job.status, json.dumps(job.entered_ms), job.submitted_ms,
             job.folder, job.code, json.dumps(job.arguments), json.dumps(dict(job.settings)),
             job.restore_path, job.next_checkpoint_id, job.python),
        )  # fmt: skip

    def jobs(self) -> Sequence[JobRow]:
        """Every job, oldest first."""
        rows = self._db.execute("SELECT * FROM jobs ORDER BY submitted_ms, job_id")
        return [_job(row) for row in rows]

    def set_status(self, job_id: str, status: JobStatus, entered: Mapping[JobStatus, int]) -> None:
        """Record the state of a job."""
        self._soon(
            "UPDATE jobs SET status = ?, entered_ms = ? WHERE job_id = ?",
            (status, json.dumps(entered), job_id),
        )

    def set_settings(self, job_id: str, settings: Mapping[str, str], *, soon: bool) -> None:
        """Record settings that were changed. Raises StorageError, unless `soon` is enough."""
        write = self._soon if soon else self._now
        write("UPDATE jobs SET settings = ? WHERE job_id = ?", (json.dumps(dict(settings)), job_id))

    def forget_job(self, job_id: str) -> None:
        """Remove an ended job and all that belongs to it. Raises StorageError."""
        self._now("DELETE FROM operations WHERE job_id = ?", (job_id,))
        self._now("DELETE FROM jobs WHERE job_id = ?", (job_id,))

    def reserve_checkpoint(self, job_id: str, next_id: int) -> None:
        """Never use an id below `next_id` again, whatever happens. Raises StorageError."""
        self._now(
            "UPDATE jobs SET next_checkpoint_id = max(next_checkpoint_id, ?) WHERE job_id = ?",
            (next_id, job_id),
        )

    def add_attempt(
        self, job_id: str, attempt_id: str, number: int, now_ms: int, restored_from: str | None
    ) -> None:
        """Record that a job is being deployed."""
        self._soon(
            "INSERT INTO attempts VALUES (?, ?, ?, ?, ?)",
            (attempt_id, job_id, number, now_ms, restored_from),
        )
        self._soon(
            "DELETE FROM attempts WHERE job_id = ? AND number <= ?",
            (job_id, number - ATTEMPTS_KEPT),
        )

    def attempts(self, job_id: str) -> int:
        """How often a job was deployed."""
        row = self._one("SELECT max(number) FROM attempts WHERE job_id = ?", job_id)
        return 0 if row is None or row[0] is None else int(row[0]) + 1

    # Processes.

    def add_process(self, process: ProcessRow) -> None:
        """Remember a process that must not outlive its purpose."""
        self._soon(
            "INSERT OR REPLACE INTO processes VALUES (?, ?, ?)",
            (process.pid, process.created, process.what),
        )

    def processes(self) -> Sequence[ProcessRow]:
        """Processes that may still run."""
        return [ProcessRow(*row) for row in self._db.execute("SELECT * FROM processes")]

    def forget_process(self, pid: int) -> None:
        """A process is gone."""
        self._soon("DELETE FROM processes WHERE pid = ?", (pid,))

    # Snapshots.

    def add_snapshot(self, row: SnapshotRow) -> None:
        """Record a completed snapshot, for good after `on_disk`. Raises StorageError."""
        self._written(*_put_snapshot(row))

    def claim(self, row: SnapshotRow) -> None:
        """Make a snapshot from elsewhere a checkpoint of this job; no other has it any more.

        Raises StorageError.
        """
        self._now("DELETE FROM snapshots WHERE path = ? AND job_id != ?", (row.path, row.job_id))
        self._now(*_put_snapshot(row))

    def recovery_point(self, job_id: str) -> SnapshotRow | None:
        """The newest snapshot that a failed job starts again from."""
        rows = self._db.execute(
            "SELECT * FROM snapshots WHERE job_id = ? AND NOT discarded"
            " ORDER BY checkpoint_id DESC",
            (job_id,),
        )
        return next((row for row in map(_snapshot, rows) if row.recoverable), None)

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
        found = map(_snapshot, rows)
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

    # Operations.

    def add_operation(self, row: OperationRow) -> None:
        """Record that an operation has begun. Raises StorageError."""
        self._now(*_put_operation(row))

    def put_operation(self, row: OperationRow) -> None:
        """Record where an operation stands."""
        self._soon(*_put_operation(row))

    def operation(self, trigger_id: str) -> OperationRow | None:
        """One operation."""
        row = self._one("SELECT * FROM operations WHERE trigger_id = ?", trigger_id)
        return _operation(row) if row else None

    def open_operations(self) -> Sequence[OperationRow]:
        """Operations that are not done."""
        rows = self._db.execute("SELECT * FROM operations WHERE NOT done")
        return [_operation(row) for row in rows]

    def forget_operations(self, before_ms: int) -> None:
        """Remove operations that are done, and were asked for before that time."""
        self._soon("DELETE FROM operations WHERE done AND requested_ms < ?", (before_ms,))

    # Failures.

    def add_failure(self, job_id: str, at_ms: int, body: Json) -> None:
        """Record why an attempt failed; a job that restarts for ever keeps the newest ones."""
        self._soon(
            "INSERT INTO failures (job_id, at_ms, body) VALUES (?, ?, ?)",
            (job_id, at_ms, json.dumps(body)),
        )
        self._soon(
            "DELETE FROM failures WHERE job_id = ? AND id <= (SELECT id FROM failures"
            " WHERE job_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (job_id, job_id, FAILURES_KEPT),
        )

    def amend_failure(self, job_id: str, body: Json) -> None:
        """More is known of the newest failure of a job."""
        self._soon(
            "UPDATE failures SET body = ? WHERE id ="
            " (SELECT max(id) FROM failures WHERE job_id = ?)",
            (json.dumps(body), job_id),
        )

    def failures(self, job_id: str, limit: int = FAILURES_KEPT) -> Sequence[Json]:
        """The newest failures of a job, newest first."""
        rows = self._db.execute(
            "SELECT body FROM failures WHERE job_id = ? ORDER BY id DESC LIMIT ?", (job_id, limit)
        )
        return [json.loads(row[0]) for row in rows]

    def _one(self, query: str, *values: object) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._db.execute(query, values).fetchone()
        return row


def _job(row: sqlite3.Row) -> JobRow:
    entered = {JobStatus(status): at for status, at in json.loads(row["entered_ms"]).items()}
    return JobRow(
        job_id=row["job_id"],
        name=row["name"],
        status=JobStatus(row["status"]),
        entered_ms=entered,
        submitted_ms=row["submitted_ms"],
        folder=row["folder"],
        code=row["code"],
        arguments=tuple(json.loads(row["arguments"])),
        settings=json.loads(row["settings"]),
        restore_path=row["restore_path"],
        next_checkpoint_id=row["next_checkpoint_id"],
        python=row["python"],
    )


def _snapshot(row: sqlite3.Row) -> SnapshotRow:
    flags = {name: bool(row[name]) for name in ("ends_job", "discarded")}
    return SnapshotRow(**(dict(row) | flags | {"kind": SnapshotKind(row["kind"])}))


def _put_snapshot(row: SnapshotRow) -> tuple[str, tuple[object, ...]]:
    return "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", (
        row.job_id,
        row.checkpoint_id,
        row.kind,
        row.path,
        row.completed_ms,
        row.ends_job,
        row.discarded,
    )


def _operation(row: sqlite3.Row) -> OperationRow:
    return OperationRow(**(dict(row) | {"done": bool(row["done"])}))


def _put_operation(row: OperationRow) -> tuple[str, tuple[object, ...]]:
    return "INSERT OR REPLACE INTO operations VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (
        row.trigger_id,
        row.job_id,
        row.what,
        row.requested_ms,
        row.done,
        row.location,
        row.checkpoint_id,
        row.failure,
    )
