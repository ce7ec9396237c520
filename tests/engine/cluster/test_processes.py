"""Processes found again by id and birth."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from engine.cluster.machines import processes


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


async def test_a_process_that_is_told_to_end_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    row = processes.identify(sleeper.pid, "sleeper")
    assert row is not None
    assert processes.runs(row)
    await processes.end([row])
    assert not processes.runs(row)


async def test_another_process_with_the_same_id_is_left_alone(
    sleeper: subprocess.Popen[bytes],
) -> None:
    row = processes.identify(sleeper.pid, "sleeper")
    assert row is not None
    other = replace(row, created=row.created - 1)
    assert not processes.runs(other)
    await processes.end([other])
    assert processes.runs(row)


def test_setting_the_time_of_day_does_not_hide_a_process(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = processes.identify(sleeper.pid, "sleeper")
    assert row is not None
    monkeypatch.setattr(psutil, "boot_time", lambda: 0.0)
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: 0.0, raising=False)
    assert processes.runs(row)


def test_a_process_that_never_was_is_not_identified() -> None:
    assert processes.identify(2**22 + 1, "nobody") is None
