"""Steps: processes of ours that do for the job manager what it must not do itself, within limits.

    command ─▶ a process in a session of its own ─▶ Ended: code, and the end of what it printed
                 │ too long: TimeUp     too much memory, with its children: MemoryUp
                 ▼
               killed, with whatever it started

Memory is watched as what is resident, because allocators reserve far more than they touch. A step
dies with the job manager, and its temporary files lie where those of the job manager do.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

LAST_BYTES = 64 << 10
"""Of a step's output: its last lines are what people are told."""

TETHER = str(Path(__file__).with_name("tether.py"))

LOOK_S = 0.1
"""Between looks at its memory: in that time a process can touch a few hundred megabytes."""


class TimeUp(Exception):
    """The step was killed after its time."""


class MemoryUp(Exception):
    """The step was killed because it took more memory than it may."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a step ended."""

    code: int
    """Negative when a signal ended it."""
    output: str
    """The end of what it printed."""

    @property
    def last_line(self) -> str:
        """What it said last, or which signal ended it."""
        said = self.output.strip().rpartition("\n")[2]
        if self.code < 0:
            return f"signal {-self.code} ended it" + (f" after it said: {said}" if said else "")
        return said or "it ended without a word"


async def run_step(
    command: Sequence[str],
    *,
    timeout_s: float,
    memory_bytes: int | None = None,
    environment: Mapping[str, str] | None = None,
    folder: str | None = None,
) -> Ended:
    """Run a step to its end. Raises TimeUp, MemoryUp, OSError."""
    output = _LastWords()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", TETHER, str(os.getpid())),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output.end,
            stderr=output.end,
            env={**(environment or os.environ), "TMPDIR": tempfile.gettempdir()},
            cwd=folder,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(timeout_s):
                await _wait(process, memory_bytes)
        except TimeoutError as error:
            raise TimeUp from error
        finally:
            # With whatever it started, also when the request itself was cancelled.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = await process.wait()
        return Ended(code, output.text)
    finally:
        output.close()


async def _wait(process: asyncio.subprocess.Process, memory_bytes: int | None) -> None:
    """Wait for the end. Raises MemoryUp."""
    if memory_bytes is None:
        await process.wait()
        return
    ended = asyncio.create_task(process.wait())
    larger = asyncio.create_task(outgrown(lambda: resident_bytes(process.pid), memory_bytes))
    try:
        await asyncio.wait([ended, larger], return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            raise MemoryUp
    finally:
        ended.cancel()
        larger.cancel()


async def outgrown(held: Callable[[], int], memory_bytes: int) -> None:
    """Wait until a process holds more than it may. Raises what `held` raises."""
    while held() <= memory_bytes:
        await asyncio.sleep(LOOK_S)


def resident_bytes(pid: int) -> int:
    """Memory of a process and of what it started, as far as that is there."""
    total = 0
    with suppress(psutil.Error):
        step = psutil.Process(pid)
        for process in (step, *step.children(recursive=True)):
            with suppress(psutil.Error):
                total += process.memory_info().rss
    return total


class _LastWords:
    """The end of what a process prints, however much that is and whoever keeps the pipe open."""

    def __init__(self) -> None:
        self._kept = b""
        self._pipe, self.end = os.pipe()
        os.set_blocking(self._pipe, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._pipe, self._read)

    @property
    def text(self) -> str:
        """The end so far."""
        while self._read():
            pass
        return self._kept.decode(errors="replace")

    def _read(self) -> bool:
        """Take what is there; False when there is nothing."""
        try:
            chunk = os.read(self._pipe, LAST_BYTES)
        except BlockingIOError:
            return False
        self._kept = (self._kept + chunk)[-LAST_BYTES:]
        return bool(chunk)

    def close(self) -> None:
        """Listen no longer."""
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        os.close(self.end)
