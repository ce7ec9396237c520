"""What killed processes leave on disk is removed; what belongs to the living stays."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cluster.machines.sweeping import sweep_sockets, sweep_state
from engine.graph.plan import Plan
from engine.runtime.control import SOCKET_NAME
from engine.runtime.worker_exchange import data_socket
from engine.state.scratch import scratch_folder, temporary_folder

PLAN = Plan("numbers", 128, None, (), (), state_backend="rocksdb")
SCRATCH = "from pathlib import Path; from engine.state.scratch import scratch_folder; import sys; "


@pytest.fixture
def of_the_dead(tmp_path: Path) -> Path:
    """The state of a process that was killed."""
    make = f"{SCRATCH} print(scratch_folder(Path({str(tmp_path)!r}))); import os; os._exit(1)"
    command = [sys.executable, "-c", make]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    folder = Path(told.strip())
    (folder / "000001.sst").touch()
    return folder


async def test_state_of_the_dead_is_removed_and_that_of_the_living_stays(
    tmp_path: Path, of_the_dead: Path
) -> None:
    mine = tmp_path / of_the_dead.name.replace("headwater-state", "other")
    mine.mkdir()
    await sweep_state(PLAN, {"state.backend.rocksdb.localdir": str(tmp_path)})
    assert not of_the_dead.exists()
    assert mine.exists()
    assert scratch_folder(tmp_path).exists()


async def test_state_lies_in_the_temporary_folder_unless_told_otherwise(
    of_the_dead: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(of_the_dead.parent))
    assert temporary_folder() == of_the_dead.parent
    await sweep_state(replace(PLAN, state_backend="memory"), {})
    assert of_the_dead.exists()
    await sweep_state(PLAN, {})
    assert not of_the_dead.exists()


async def test_a_folder_that_is_not_there_needs_no_sweeping(tmp_path: Path) -> None:
    await sweep_state(PLAN, {"state.backend.rocksdb.localdir": str(tmp_path / "gone")})


def test_sockets_of_the_dead_are_removed_and_those_of_others_stay(tmp_path: Path) -> None:
    workers = [data_socket(tmp_path, "0123abcdef", slot) for slot in (0, 12)]
    for path in (tmp_path / SOCKET_NAME, *workers):
        path.touch()
    others = [tmp_path / name for name in ("notes.txt", "redis.sock", "web-1.sock")]
    for path in others:
        path.touch()
    sweep_sockets(tmp_path)
    assert sorted(tmp_path.iterdir()) == others
