"""The rows of the job manager's store, as values; to and from its tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.elements import SnapshotKind
from engine.rest.model.jobs import JobStatus

Write = tuple[str, tuple[object, ...]]
"""A statement and its values."""


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
    restarts: int = 0
    rescales: int = 0


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


def job_of(row: sqlite3.Row) -> JobRow:
    """A job, from its table."""
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
        restarts=row["restarts"],
        rescales=row["rescales"],
    )


def snapshot_of(row: sqlite3.Row) -> SnapshotRow:
    """A snapshot, from its table."""
    flags = {name: bool(row[name]) for name in ("ends_job", "discarded")}
    return SnapshotRow(**(dict(row) | flags | {"kind": SnapshotKind(row["kind"])}))


def snapshot_write(row: SnapshotRow) -> Write:
    """What puts a snapshot into its table."""
    return "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?)", (
        row.job_id,
        row.checkpoint_id,
        row.kind,
        row.path,
        row.completed_ms,
        row.ends_job,
        row.discarded,
    )


def operation_of(row: sqlite3.Row) -> OperationRow:
    """An operation, from its table."""
    return OperationRow(**(dict(row) | {"done": bool(row["done"])}))


def operation_write(row: OperationRow) -> Write:
    """What puts an operation into its table."""
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
