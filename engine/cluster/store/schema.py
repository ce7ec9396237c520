"""The tables of the job manager's store, and how the store of an older engine gets them.

    version 1 ─▶ 2 ─▶ … ─▶ VERSION     a script each; a new store goes all the way

Guarantee  a migration is one transaction with the version that it leads to: killed in the middle,
           it has not begun. A script that was released is never changed: a new one is added.
Errors     ConfigError with one sentence for a file that is damaged, that is no store, that cannot
           be opened, or that a newer engine has written. Such a file is not touched.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import ConfigError

_V1 = """
CREATE TABLE artifacts (
    artifact_id TEXT PRIMARY KEY, filename TEXT NOT NULL, uploaded_ms INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL
);
CREATE TABLE jobs (
    job_id TEXT PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, entered_ms TEXT NOT NULL,
    submitted_ms INTEGER NOT NULL, folder TEXT NOT NULL, code TEXT NOT NULL,
    arguments TEXT NOT NULL, settings TEXT NOT NULL, restore_path TEXT,
    next_checkpoint_id INTEGER NOT NULL
);
CREATE TABLE attempts (
    attempt_id TEXT PRIMARY KEY, job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number INTEGER NOT NULL, started_ms INTEGER NOT NULL, restored_from TEXT
);
CREATE TABLE processes (
    pid INTEGER NOT NULL, created REAL NOT NULL, what TEXT NOT NULL, PRIMARY KEY (pid, created)
);
CREATE TABLE snapshots (
    job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, checkpoint_id INTEGER NOT NULL,
    kind TEXT NOT NULL, path TEXT NOT NULL, completed_ms INTEGER NOT NULL,
    ends_job INTEGER NOT NULL, discarded INTEGER NOT NULL, PRIMARY KEY (job_id, checkpoint_id)
);
CREATE TABLE operations (
    trigger_id TEXT PRIMARY KEY, job_id TEXT, what TEXT NOT NULL, requested_ms INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0, location TEXT, checkpoint_id INTEGER, failure TEXT
);
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE,
    at_ms INTEGER NOT NULL, body TEXT NOT NULL
);
"""

_V2 = """
ALTER TABLE jobs ADD COLUMN python TEXT NOT NULL DEFAULT '';
CREATE INDEX attempts_of_job ON attempts (job_id, number);
CREATE INDEX failures_of_job ON failures (job_id, id);
CREATE INDEX operations_of_job ON operations (job_id, requested_ms);
"""
"""The interpreter of a job with packages of its own; and indexes, so that forgetting a job is
quick among many."""

_V3 = """
CREATE TABLE checkpoints (
    job_id TEXT NOT NULL REFERENCES jobs ON DELETE CASCADE, checkpoint_id INTEGER NOT NULL,
    sort TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (job_id, checkpoint_id)
);
"""
"""Statistics of ended checkpoints, and as number 0 their summary."""

_V4 = """
ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN rescales INTEGER NOT NULL DEFAULT 0;
UPDATE jobs SET restarts = max(0, coalesce(
    (SELECT max(number) FROM attempts WHERE attempts.job_id = jobs.job_id), 0));
"""
"""How often a job restarted, and was rescaled: an attempt does not tell which of them it was."""

MIGRATIONS = (_V1, _V2, _V3, _V4)
VERSION = len(MIGRATIONS)

_INCREMENTAL = 2
_WAL_BYTES = 4 << 20
"""What the journal keeps on disk between two checkpoints of its own."""
_LATE_PAGES = 4_000
"""16 MiB: before that `flushing.py` moves them into the file, in a thread."""


def connect(path: Path) -> sqlite3.Connection:
    """Open a store, and bring it to this engine's version. Raises ConfigError."""
    with _in_a_sentence(path):
        db = sqlite3.connect(path, isolation_level=None)
        try:
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
    return db


@contextmanager
def _in_a_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        msg = f"store {path} cannot be opened: {error}; check its folder, and make room on its disk"
        raise ConfigError(msg) from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from error


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    version = _version_of(db, path)
    # Before the first table is written: later it takes a VACUUM.
    db.execute(f"PRAGMA auto_vacuum={_INCREMENTAL}")
    db.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        f"PRAGMA journal_size_limit={_WAL_BYTES}; PRAGMA wal_autocheckpoint={_LATE_PAGES};"
    )
    _check(db, path)
    _migrate(db, version)


def _version_of(db: sqlite3.Connection, path: Path) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 0 <= version <= VERSION:
        msg = (
            f"store {path} has format {version}, this engine reads up to {VERSION}; "
            "use the engine that wrote it, or another home folder"
        )
        raise ConfigError(msg)
    return int(version)


def _check(db: sqlite3.Connection, path: Path) -> None:
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise _damaged(path, str(found).splitlines()[-1])


def _damaged(path: Path, reason: str) -> ConfigError:
    msg = f"store {path} is damaged: {reason}; put back a copy of it, or use another home folder"
    return ConfigError(msg)


def _migrate(db: sqlite3.Connection, version: int) -> None:
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        db.executescript(f"BEGIN IMMEDIATE;{script}PRAGMA user_version={number};COMMIT;")
    (mode,) = db.execute("PRAGMA auto_vacuum").fetchone()
    if mode != _INCREMENTAL:  # written before version 2
        db.execute("VACUUM")
