"""A child process that is kept alive: started, awaited, started again, ended.

    starting ──ready──▶ up ──ends on its own──▶ waiting ──back-off──▶ starting …
          any of these ──end()──▶ ended

Guarantee  the child cannot outlive this process (leash.py), and after `end` neither it nor a
           process of its group runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from controlplane.supervisor.layout import CHECKOUT
from controlplane.supervisor.programs import Program
from controlplane.supervisor.restarts import BackOff

LEASH = Path(__file__).with_name("leash.py")
ASK_S = 0.03
MAX_LOG_BYTES = 20 * 1024 * 1024
"""Beyond it a log is put aside as `.1` when its program starts; the one before is dropped."""

Say = Callable[[str], None]


class Child:
    """One program and the process that runs it now."""

    def __init__(
        self, program: Program, environment: Mapping[str, str], log: Path, say: Say
    ) -> None:
        self.program = program
        self.log = log
        self.starts = 0
        self._environment = {**environment, **program.environment}
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._ending = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Child({self.program.name}, pid={self.pid}, starts={self.starts})"

    @property
    def pid(self) -> int | None:
        """Process id, while it runs."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it, and keep it alive from now on."""
        self._loop = asyncio.create_task(self._keep_alive())

    async def ready(self) -> None:
        """Wait until it answers."""
        while not (self._process and await self.program.is_ready()):
            await asyncio.sleep(ASK_S)

    async def end(self, patience_s: float) -> None:
        """Ask it to end, wait, and kill what is left of its group."""
        self._ending.set()
        process = self._process
        if process is not None:
            _signal_group(process.pid, signal.SIGTERM, only_leader=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await process.wait()
            _signal_group(process.pid, signal.SIGKILL)
            await process.wait()
        if self._loop is not None:
            await self._loop

    def last_line(self) -> str:
        """What it said last: usually why it ended."""
        with suppress(OSError):
            tail = self.log.read_bytes()[-4_000:].decode(errors="replace")
            lines = [line.strip() for line in tail.splitlines() if line.strip()]
            return lines[-1][:300] if lines else ""
        return ""

    async def _keep_alive(self) -> None:
        back_off = BackOff()
        while not self._ending.is_set():
            began = time.monotonic()
            code = await self._run_once()
            if self._ending.is_set():
                return
            wait_s = back_off.wait_s(time.monotonic() - began)
            self._say(f"{self.program.name} ended ({_how(code)}): {self._why()}")
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._ending.wait()

    async def _run_once(self) -> int:
        with _open_log(self.log) as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-S", str(LEASH), *self.program.argv),
                stdin=asyncio.subprocess.PIPE,  # its end is what the leash watches on macOS
                stdout=log,
                stderr=log,
                cwd=CHECKOUT,
                env=self._environment,
                start_new_session=True,  # Ctrl-C is for the supervisor, which ends them in order
            )
        self.starts += 1
        if self._ending.is_set():  # asked to end while it was being started
            _signal_group(self._process.pid, signal.SIGKILL)
        code = await self._process.wait()
        # A program that was killed may leave children of its own: none may meet its successor.
        _signal_group(self._process.pid, signal.SIGKILL)
        self._process = None
        return code

    def _why(self) -> str:
        line = self.last_line()
        return (
            f"starting it again; its log {self.log} ends with: {line}"
            if line
            else (f"starting it again; its log is {self.log}")
        )


def _open_log(path: Path) -> IO[bytes]:
    with suppress(FileNotFoundError):
        if path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
    return path.open("ab")


def _signal_group(leader: int, number: signal.Signals, *, only_leader: bool = False) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if only_leader:
            os.kill(leader, number)
        else:
            os.killpg(leader, number)


def _how(code: int) -> str:
    """An exit status in words."""
    if code >= 0:
        return f"exit status {code}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"
