"""The local resource manager: keeps task managers alive on this machine.

    wanted names ──▶ one process each ──ends──▶ after a second, started again

A task manager that was told to go stays away until it is wanted again, so that the loss of a
machine can be shown.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

RESPAWN_S = 1.0
"""Long enough to see that one was lost, short enough that jobs hardly wait."""


class LocalTaskManagers:
    """Task manager processes of this machine. They die with the job manager."""

    def __init__(
        self, runtime: Path, logs: Path, slots: int, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment`: variables for an embedded cluster, whose workers print where we do."""
        self._runtime = runtime
        self._logs = logs
        self._slots = slots
        self._environment = environment
        self._keepers: dict[str, asyncio.Task[None]] = {}

    @property
    def wanted(self) -> Sequence[str]:
        """Names of the task managers that are kept alive."""
        return sorted(self._keepers)

    def want(self, name: str) -> None:
        """Start a task manager, and start it again whenever it ends."""
        if name not in self._keepers:
            self._keepers[name] = asyncio.create_task(self._keep(name), name=f"keep {name}")

    async def dismiss(self, name: str) -> None:
        """End a task manager for good; its workers die with it."""
        keeper = self._keepers.pop(name, None)
        if keeper is not None:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper

    async def close(self) -> None:
        """End all of them."""
        for name in self.wanted:
            await self.dismiss(name)

    async def _keep(self, name: str) -> None:
        while True:
            code = await self._run(name)
            log.warning("task manager %s ended with code %d; starting it again", name, code)
            await asyncio.sleep(RESPAWN_S)

    async def _run(self, name: str) -> int:
        embedded = self._environment is not None
        log_file = self._logs / f"{name}.log"
        own_log = ("--log", str(log_file)) if embedded else ()
        with log_file.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "engine.cluster.taskmanager", "--lifeline", *own_log,
                "--runtime-dir", str(self._runtime), "--name", name, "--slots", str(self._slots),
                stdin=asyncio.subprocess.PIPE,
                stdout=None if embedded else output,
                stderr=None if embedded else output,
                env=self._environment,
                start_new_session=True,
            )  # fmt: skip
        try:
            return await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
