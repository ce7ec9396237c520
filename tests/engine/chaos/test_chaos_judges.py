"""What chaos would find: another output, and things left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.format.writer import write_manifest
from engine.checkpoint.storage.addresses import open_folder
from engine.elements import SnapshotKind
from engine.testing.chaos.left_over import left_over
from engine.testing.chaos.work import difference

JOB = "ab" * 16
EMPTY = Manifest(JOB, "chaos", "", 1, SnapshotKind.CHECKPOINT, 0, "0", operators=())


def outputs(*hourly: int) -> dict[str, pl.DataFrame]:
    return {"hourly": pl.DataFrame({"n": hourly}), "late": pl.DataFrame({"n": [1]})}


def test_the_same_output_is_no_difference() -> None:
    assert difference(outputs(1, 2), outputs(1, 2)) is None


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ((1, 1, 2), "3 rows, not 2: 0 are missing and 1 too many, e.g. {'n': 1, 'len': 2}"),
        ((1,), "1 rows, not 2: 1 are missing and 0 too many, e.g. {'n': 2, 'len': 1}"),
        ((1, 3), "2 rows, not 2: 1 are missing and 1 too many, e.g. {'n': 2, 'len': 1}"),
    ],
)
def test_rows_that_are_missing_or_too_many_are_counted_and_shown(
    found: tuple[int, ...], sentence: str
) -> None:
    told = difference(outputs(*found), outputs(1, 2))
    assert str(told).startswith(f"output hourly has {sentence}")


@pytest.fixture
def home() -> Iterator[Path]:
    """What a cluster keeps that was closed well; its path is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="left-"))
    home = folder / "engine"
    for part in ("tmp", "run", f"jobs/{JOB}", f"checkpoints/{JOB}/chk-1", "savepoints/sp"):
        (home / part).mkdir(parents=True)
    for snapshot in (f"checkpoints/{JOB}/chk-1", "savepoints/sp"):
        write_manifest(EMPTY, open_folder(str(home / snapshot)))
    (folder / "output").mkdir()
    yield home
    shutil.rmtree(folder)


def found(home: Path) -> list[str]:
    return left_over(home, home.parent / "output", {JOB})


def test_what_people_keep_is_not_left_over(home: Path) -> None:
    assert found(home) == []


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("engine/tmp/headwater-state-x-1-y", "is there"),
        ("engine/run/control.sock", "is there"),
        ("engine/jobmanager.json", "is there"),
        ("engine/engine.db-wal", "is there"),
        ("engine/jobs/cd", "is of no job"),
        (f"engine/checkpoints/{JOB}/shared/chk-1/state-0.parquet", "is of no snapshot"),
        ("engine/savepoints/sp/state-0.parquet", "is of no snapshot"),
        ("output/2026/.part.pending", "is hidden"),
    ],
)
def test_what_nobody_will_need_again_is_named(home: Path, path: str, sentence: str) -> None:
    planted = home.parent / path
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.touch()
    (told,) = found(home)
    assert told.endswith(sentence)
    assert str(planted) in told


@pytest.mark.parametrize("folder", [f"checkpoints/{JOB}/chk-2", "savepoints/savepoint-2"])
def test_a_snapshot_that_never_became_whole_is_named(home: Path, folder: str) -> None:
    (home / folder).mkdir()
    assert found(home) == [f"snapshot {home / folder} is not whole"]


def test_a_process_a_socket_and_a_lock_are_named(home: Path) -> None:
    command = [sys.executable, "-c", "input()"]
    variables = os.environ | {"TMPDIR": str(home / "tmp")}
    with (
        socket.socket(socket.AF_UNIX) as server,
        (home / "lock").open("a") as lock,
        subprocess.Popen(command, stdin=subprocess.PIPE, env=variables) as process,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        server.bind(str(home / "s.sock"))
        told = found(home)
        process.communicate()
    assert told == [
        f"process {process.pid} runs: {' '.join(command)}",
        f"socket {home / 's.sock'} is open",
        f"lock {home / 'lock'} is held",
    ]
