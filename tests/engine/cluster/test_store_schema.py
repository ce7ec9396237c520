"""Stores of older engines, of newer ones, and those that are none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from engine.cluster.store import schema
from engine.cluster.store.rows import JobRow, OperationRow, ProcessRow, SnapshotRow
from engine.cluster.store.store import Store
from engine.elements import SnapshotKind
from engine.errors import ConfigError
from engine.rest.model.cluster import Artifact
from engine.rest.model.jobs import JobStatus

VERSION_1 = Path(__file__).parent / "stores" / "version_1.sql"
JOB = "a" * 32


def of_version_1(path: Path) -> Path:
    database = sqlite3.connect(path)
    database.executescript(VERSION_1.read_text())
    database.close()
    return path


def version_of(path: Path) -> int:
    database = sqlite3.connect(path)
    (version,) = database.execute("PRAGMA user_version").fetchone()
    database.close()
    return int(version)


def test_a_store_of_version_1_is_read_whole(tmp_path: Path) -> None:
    path = of_version_1(tmp_path / "engine.db")
    store = Store(path)
    assert store.jobs() == [
        JobRow(
            JOB,
            "flights",
            JobStatus.RUNNING,
            {JobStatus.CREATED: 5, JobStatus.RUNNING: 6},
            5,
            "/jobs/a",
            "/artifacts/x",
            ("--speed", "0"),
            {"parallelism.default": "2"},
            "/savepoints/s-1",
            8,
        )
    ]
    assert store.attempts(JOB) == 1
    assert store.artifacts() == [Artifact("h_job.py", "job.py", 4, 10)]
    assert store.processes() == [ProcessRow(7, 1.5, "worker")]
    kept = SnapshotRow(JOB, 7, SnapshotKind.CHECKPOINT, "/checkpoints/7", 9)
    assert store.recovery_point(JOB) == kept
    done = OperationRow("c" * 32, JOB, "savepoint", 6, True, "/savepoints/s-2", 6)
    assert store.operation("c" * 32) == done
    assert store.failures(JOB, 9) == [{"message": "a worker was killed"}]
    store.close()
    assert version_of(path) == schema.VERSION


def test_an_old_store_gives_room_back_like_a_new_one(tmp_path: Path) -> None:
    for path in (of_version_1(tmp_path / "old.db"), tmp_path / "new.db"):
        database = schema.connect(path)
        assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        database.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = of_version_1(tmp_path / "engine.db")
    broken = "CREATE TABLE half (a TEXT); CREATE TABLE half (a TEXT);"
    monkeypatch.setattr(schema, "MIGRATIONS", (schema.MIGRATIONS[0], broken))
    with pytest.raises(ConfigError, match="cannot be opened: table half already exists"):
        schema.connect(path)
    database = sqlite3.connect(path)
    found = database.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchall()
    assert found == []
    database.close()
    assert version_of(path) == 1


def test_a_store_of_a_newer_engine_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "engine.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"has format 99, this engine reads up to \d+; use the"):
        Store(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("offset", [0, 4096 + 3], ids=["head", "page"])
def test_a_damaged_store_is_one_sentence(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "engine.db"
    Store(path).close()
    content = bytearray(path.read_bytes())
    content[offset : offset + 64] = b"\xff" * 64
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"is damaged: .*; put back a copy") as refused:
        Store(path)
    assert "\n" not in str(refused.value)


def test_a_store_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "engine.db").mkdir()
    with pytest.raises(ConfigError, match="cannot be opened: unable to open database file"):
        Store(tmp_path / "engine.db")
