"""Task managers of this machine: kept alive, whatever hinders their start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from engine.cluster.machines import resources
from engine.cluster.machines.resources import LocalTaskManagers
from engine.rest.errors import BadRequest, Conflict
from engine.testing.cluster import PATIENCE_S


@pytest_asyncio.fixture
async def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalTaskManagers]:
    """Nobody answers them: they wait for a job manager."""
    monkeypatch.setattr(resources, "RESPAWN_S", 0.01)
    kept = LocalTaskManagers(tmp_path, tmp_path / "logs", slots=1)
    yield kept
    await kept.close()
    assert kept.look().task_managers == ()


async def running(kept: LocalTaskManagers) -> int:
    """The process of the only one, as soon as there is one."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (one,) = kept.look().task_managers
            if one.pid is not None:
                return one.pid
            await asyncio.sleep(0.01)


async def test_what_hinders_a_start_may_be_over_the_next_time(
    kept: LocalTaskManagers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert kept.want() == "tm-1"
    async with asyncio.timeout(PATIENCE_S):
        while "tm-1 cannot be started: " not in caplog.text:
            await asyncio.sleep(0.01)
    (tmp_path / "logs").mkdir()
    assert await running(kept)


async def test_names_are_words_and_taken_once(kept: LocalTaskManagers, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with pytest.raises(BadRequest, match=r"must be letters, .*: got '\.\./x'; pass e\.g\. tm-3"):
        kept.want("../x")
    kept.want("mine")
    await running(kept)
    with pytest.raises(Conflict, match="task manager mine runs already"):
        kept.want("mine")
    assert await kept.dismiss("mine")
    assert not await kept.dismiss("mine")
