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
from collections.abc import Mapping, Sequence

from engine.cluster.store.rows import (
    JobRow,
    OperationRow,
    ProcessRow,
    job_of,
    operation_of,
    operation_write,
)
from engine.cluster.store.snapshot_tables import SnapshotTables
from engine.connectors.contract import Json
from engine.rest.model.cluster import Artifact
from engine.rest.model.jobs import JobStatus

ATTEMPTS_KEPT = 100
FAILURES_KEPT = 100


class Store(SnapshotTables):
    """All tables. Owned by one thread."""

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
            "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (job.job_id, job.name, job.status, json.dumps(job.entered_ms), job.submitted_ms,
             job.folder, job.code, json.dumps(job.arguments), json.dumps(dict(job.settings)),
             job.restore_path, job.next_checkpoint_id, job.python, job.restarts, job.rescales),
        )  # fmt: skip

    def jobs(self) -> Sequence[JobRow]:
        """Every job, oldest first."""
        rows = self._db.execute("SELECT * FROM jobs ORDER BY submitted_ms, job_id")
        return [job_of(row) for row in rows]

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

    def set_counts(self, job_id: str, restarts: int, rescales: int) -> None:
        """Record how often a job restarted and was rescaled."""
        self._soon(
            "UPDATE jobs SET restarts = ?, rescales = ? WHERE job_id = ?",
            (restarts, rescales, job_id),
        )

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

    # Operations.

    def add_operation(self, row: OperationRow) -> None:
        """Record that an operation has begun. Raises StorageError."""
        self._now(*operation_write(row))

    def put_operation(self, row: OperationRow) -> None:
        """Record where an operation stands."""
        self._soon(*operation_write(row))

    def operation(self, trigger_id: str) -> OperationRow | None:
        """One operation."""
        row = self._one("SELECT * FROM operations WHERE trigger_id = ?", trigger_id)
        return operation_of(row) if row else None

    def open_operations(self) -> Sequence[OperationRow]:
        """Operations that are not done."""
        rows = self._db.execute("SELECT * FROM operations WHERE NOT done")
        return [operation_of(row) for row in rows]

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
