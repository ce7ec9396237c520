"""The local resource manager: keeps task managers alive on this machine.

    wanted names ──▶ one process each ──ends──▶ after a second, started again
                                       └─respawn off──▶ stays lost until it is wanted again

Task managers that were lost are left lost when a person says so, so that the loss of a machine can
be shown. What a person has changed lasts as long as the job manager.

Errors   BadRequest for a name that is none, Conflict for one that is taken.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from engine.rest.errors import BadRequest, Conflict
from engine.rest.model.resources import LocalResources, LocalTaskManager

log = logging.getLogger(__name__)

RESPAWN_S = 1.0
"""Long enough to see that one was lost, short enough that jobs hardly wait."""

MOST = 64
"""More processes than that on one machine are a mistake."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(slots=True)
class _Kept:
    """One task manager that is wanted."""

    keeper: asyncio.Task[None] | None = None
    process: asyncio.subprocess.Process | None = None


class LocalTaskManagers:
    """Task manager processes of this machine. They die with the job manager."""

    def __init__(
        self,
        runtime: Path,
        logs: Path,
        slots: int,
        environment: Mapping[str, str] | None = None,
        *,
        respawn: bool = True,
    ) -> None:
        """`environment`: variables for an embedded cluster, whose workers print where we do."""
        self._runtime = runtime
        self._logs = logs
        self._slots = slots
        self._environment = environment
        self._respawn = respawn
        self._kept: dict[str, _Kept] = {}

    def look(self) -> LocalResources:
        """Which are wanted, and which of them run."""
        kept = sorted(self._kept.items())
        found = (
            LocalTaskManager(name, None if one.process is None else one.process.pid)
            for name, one in kept
        )
        return LocalResources(self._respawn, tuple(found))

    def leave_lost(self, wish: bool) -> None:
        """Whether those that are lost stay so; if not, they are started again at once."""
        self._respawn = not wish
        if self._respawn:
            for name in list(self._kept):
                self._keep_alive(name)

    def want(self, name: str | None = None) -> str:
        """Start a task manager, a lost one also again; return its name. Raises."""
        name = name or self._free_name()
        if not _NAME.fullmatch(name):
            msg = (
                f"name of a task manager must be letters, digits, - and _, at most 40: "
                f"got {name[:80]!r}; pass e.g. tm-3"
            )
            raise BadRequest(msg)
        if name in self._kept and self._kept[name].process is not None:
            msg = f"task manager {name} runs already; pass another name, or none"
            raise Conflict(msg)
        if name not in self._kept and len(self._kept) >= MOST:
            msg = f"no more task managers are started here: there are {MOST}; stop one first"
            raise Conflict(msg)
        self._kept.setdefault(name, _Kept())
        self._keep_alive(name)
        return name

    def _free_name(self) -> str:
        return next(name for name in map("tm-{}".format, count(1)) if name not in self._kept)

    def _keep_alive(self, name: str) -> None:
        kept = self._kept[name]
        if kept.keeper is None or kept.keeper.done():
            kept.keeper = asyncio.create_task(self._keep(name, kept), name=f"keep {name}")

    async def dismiss(self, name: str) -> bool:
        """End a task manager for good; its workers die with it. False when it is not ours."""
        kept = self._kept.pop(name, None)
        if kept is None:
            return False
        assert kept.keeper is not None
        kept.keeper.cancel()
        with suppress(asyncio.CancelledError):
            await kept.keeper
        return True

    async def close(self) -> None:
        """End all of them."""
        for name in list(self._kept):
            await self.dismiss(name)

    async def _keep(self, name: str, kept: _Kept) -> None:
        while True:
            try:
                ended = f"ended with code {await self._run(name, kept)}"
            except OSError as error:  # no room for its log, no memory for a process
                ended = f"cannot be started: {error}"
            if not self._respawn:
                log.warning("task manager %s %s; left lost", name, ended)
                return
            log.warning("task manager %s %s; starting it again", name, ended)
            await asyncio.sleep(RESPAWN_S)

    async def _run(self, name: str, kept: _Kept) -> int:
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
        kept.process = process
        try:
            return await process.wait()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            kept.process = None
