"""The file of the embedded store: its tables, its connections, and the ids of its columns.

    series   (bucket, measurement, tags)      -> id
    columns  (series, field)                  -> id, sealed: before it raw points are gone for good
    points   (column, time) -> value          what was written lately, and late
    raw      (column, start) -> end, block    points of [start, end); finest: of its roll-ups
    rollups  (column, step, start) -> block   partials of one step, over the span of that step
    state    generation                       rises whenever columns were sealed or dropped

Guarantee  a transaction is on disk when it ends (WAL, synchronous NORMAL: a power cut may lose the
         last moments, a crash does not). Several processes may write at once.
Needs    a local file system.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane.metrics.line_protocol import Point, Tags

Db = sqlite3.Connection

PATIENCE_S = 10
"""How long a write waits for another process."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY, bucket TEXT NOT NULL, measurement TEXT NOT NULL, tags TEXT NOT NULL,
    UNIQUE (bucket, measurement, tags));
CREATE TABLE IF NOT EXISTS columns (
    id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL REFERENCES series, field TEXT NOT NULL,
    sealed_ns INTEGER, UNIQUE (series_id, field));
CREATE TABLE IF NOT EXISTS field_types (
    bucket TEXT NOT NULL, measurement TEXT NOT NULL, field TEXT NOT NULL, type TEXT NOT NULL,
    PRIMARY KEY (bucket, measurement, field)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS points (
    column_id INTEGER NOT NULL, time_ns INTEGER NOT NULL, value NOT NULL,
    PRIMARY KEY (column_id, time_ns)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS raw (
    column_id INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
    finest_ns INTEGER NOT NULL, count INTEGER NOT NULL, block BLOB NOT NULL,
    PRIMARY KEY (column_id, start_ns));
CREATE TABLE IF NOT EXISTS rollups (
    column_id INTEGER NOT NULL, step_ns INTEGER NOT NULL, start_ns INTEGER NOT NULL,
    block BLOB NOT NULL, PRIMARY KEY (column_id, step_ns, start_ns));
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO state VALUES ('generation', 0);
"""

_V1_COLUMNS = "ALTER TABLE columns ADD COLUMN sealed_ns INTEGER"


class Database:
    """One file; safe to share between threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: queue.LifoQueue[Db] = queue.LifoQueue()
        self._write_lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.reading() as db:
            db.executescript(_SCHEMA)
            known = {row[1] for row in db.execute("PRAGMA table_info(columns)")}
            if "sealed_ns" not in known:  # written before there were blocks
                db.execute(_V1_COLUMNS)

    def close(self) -> None:
        """Close the connections that are not in use."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    @contextmanager
    def reading(self) -> Iterator[Db]:
        """A connection; what it reads inside of one `BEGIN` belongs together."""
        try:
            db = self._idle.get_nowait()
        except queue.Empty:
            db = sqlite3.connect(
                self.path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
        try:
            yield db
        finally:
            self._idle.put(db)

    @contextmanager
    def snapshot(self) -> Iterator[Db]:
        """A connection that sees one state of everything."""
        with self.reading() as db:
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[Db]:
        """Commit at the end, or roll back."""
        with self._write_lock, self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise


def next_generation(db: Db) -> None:
    """Tell every process that columns were sealed or dropped."""
    db.execute("UPDATE state SET value = value + 1 WHERE name = 'generation'")


class Columns:
    """Ids, types and seals of columns, remembered until they change. For one writer at a time."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str, Tags, str], tuple[int, int | None]] = {}
        self._types: dict[tuple[str, str, str], str] = {}
        self._generation = -1

    def forget(self) -> None:
        """What a transaction added is gone, or another process has changed it."""
        self._ids.clear()
        self._types.clear()

    def refresh(self, db: Db) -> None:
        """Forget what is known if it has changed. First of all in a transaction."""
        (generation,) = db.execute("SELECT value FROM state WHERE name = 'generation'").fetchone()
        if generation != self._generation:
            self.forget()
            self._generation = generation

    def type_of(self, db: Db, bucket: str, measurement: str, field: str, given: str) -> str:
        """The type of a field: that of its first value."""
        key = (bucket, measurement, field)
        known = self._types.get(key)
        if known is None:
            db.execute("INSERT OR IGNORE INTO field_types VALUES (?, ?, ?, ?)", (*key, given))
            known = db.execute(
                "SELECT type FROM field_types WHERE bucket = ? AND measurement = ? AND field = ?",
                key,
            ).fetchone()[0]
            self._types[key] = known
        return known

    def column(self, db: Db, bucket: str, point: Point, field: str) -> tuple[int, int | None]:
        """Id and seal of a column; a new one is made."""
        key = (bucket, point.measurement, point.tags, field)
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = _made(db, bucket, point, field)
        return known


def _made(db: Db, bucket: str, point: Point, field: str) -> tuple[int, int | None]:
    series = (bucket, point.measurement, json.dumps(point.tags, ensure_ascii=False))
    db.execute("INSERT OR IGNORE INTO series (bucket, measurement, tags) VALUES (?, ?, ?)", series)
    (series_id,) = db.execute(
        "SELECT id FROM series WHERE bucket = ? AND measurement = ? AND tags = ?", series
    ).fetchone()
    db.execute("INSERT OR IGNORE INTO columns (series_id, field) VALUES (?, ?)", (series_id, field))
    id_, sealed = db.execute(
        "SELECT id, sealed_ns FROM columns WHERE series_id = ? AND field = ?", (series_id, field)
    ).fetchone()
    return id_, sealed
