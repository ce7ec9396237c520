"""The law under a short list of schedules of kills, stops, full disks and moves."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.testing.chaos.schedule import SHORT_LIST
from engine.testing.chaos.suite import Chaos

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def chaos() -> Iterator[Chaos]:
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))  # short: it will hold sockets
    yield Chaos(folder)
    if not any(folder.glob("seed-*")):  # what broke the law is kept
        shutil.rmtree(folder)


@pytest.mark.parametrize("seed", SHORT_LIST)
def test_chaos_changes_nothing_and_leaves_nothing_behind(chaos: Chaos, seed: int) -> None:
    broken = chaos.run(seed)
    assert broken is None, broken
