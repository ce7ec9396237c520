"""Steps end, whatever they do: by themselves, or killed with all that they started."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from engine.cluster.steps import MemoryUp, TimeUp, run_step
from engine.testing.cluster import wait_until

EAT = "kept = b'x' * (200 << 20); import time; time.sleep(60)"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {EAT!r}])"


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


async def test_a_step_ends_with_its_code_and_its_last_words() -> None:
    code = "import sys; print('first'); print('x' * 200_000); print('last'); sys.exit(3)"
    ended = await run_step(python(code), timeout_s=30)
    assert (ended.code, ended.last_line) == (3, "last")


async def test_a_step_that_a_signal_ended_says_which() -> None:
    code = "import os; print('so far', flush=True); os.kill(os.getpid(), 11)"
    ended = await run_step(python(code), timeout_s=30)
    assert ended.last_line == "signal 11 ended it after it said: so far"


async def test_a_step_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    code = """if 1:
        import subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        open(sys.argv[1], "w").write(str(child.pid))
        time.sleep(60)"""
    with pytest.raises(TimeUp):
        await run_step(python(code, str(tmp_path / "pid")), timeout_s=1)
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not runs(child), "the child is gone")


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("code", [EAT, CHILD], ids=["itself", "child"])
async def test_a_step_that_takes_too_much_memory_is_killed(code: str) -> None:
    with pytest.raises(MemoryUp):
        await run_step(python(code), timeout_s=30, memory_bytes=100 << 20)
