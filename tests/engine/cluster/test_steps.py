"""Steps end, whatever they do: by themselves, or killed with all that they started."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from engine.cluster.programs.steps import MemoryUp, TimeUp, run_step
from engine.testing.cluster import PATIENCE_S, wait_until

EAT = "kept = b'x' * (200 << 20); import time; time.sleep(60)"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {EAT!r}])"


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


async def test_a_step_ends_with_its_code_and_its_last_words() -> None:
    code = "import sys; print('first'); print('x' * 200_000); print('last'); sys.exit(3)"
    ended = await run_step(python(code), timeout_s=PATIENCE_S)
    assert (ended.code, ended.last_line) == (3, "last")


async def test_a_step_that_a_signal_ended_says_which() -> None:
    code = "import os; print('so far', flush=True); os.kill(os.getpid(), 11)"
    ended = await run_step(python(code), timeout_s=PATIENCE_S)
    assert ended.last_line == "signal 11 ended it after it said: so far"


async def test_a_step_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    command = ["sh", "-c", 'sleep 600 & echo $! >"$0" && wait', str(told)]
    for timeout_s in (0.3, 3, 30):  # until that was enough to start the child
        with pytest.raises(TimeUp):
            await run_step(command, timeout_s=timeout_s)
        if told.exists() and told.read_text():
            break
    child = int(told.read_text())
    wait_until(lambda: not runs(child), "the child is gone")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
def test_a_step_dies_with_whoever_started_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    told.touch()
    step = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    starts = f"""if 1:
        import asyncio, sys
        from engine.cluster.programs.steps import run_step
        command = [sys.executable, "-c", {step!r}, sys.argv[1]]
        asyncio.run(run_step(command, timeout_s=60))"""
    with subprocess.Popen(python(starts, str(told))) as starter:
        pid = int(wait_until(told.read_text, "the step runs"))
        starter.kill()
    wait_until(lambda: not runs(pid), "the step is gone")


async def test_a_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    ended = await run_step([str(tmp_path / "gone")], timeout_s=PATIENCE_S)
    assert ended.last_line == f"{tmp_path / 'gone'} cannot be run: No such file or directory"


async def test_temporary_files_of_a_step_lie_where_ours_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = await run_step(
        python("import tempfile; print(tempfile.gettempdir())"), timeout_s=PATIENCE_S
    )
    assert ended.last_line == str(tmp_path)


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("code", [EAT, CHILD], ids=["itself", "child"])
async def test_a_step_that_takes_too_much_memory_is_killed(code: str) -> None:
    with pytest.raises(MemoryUp):
        await run_step(python(code), timeout_s=PATIENCE_S, memory_bytes=100 << 20)
