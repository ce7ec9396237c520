"""Starting and ending the whole platform, in order.

redis, engine, `bootstrap` ──▶ web, worker, beat, collector, control ──▶ login link, demo ──▶ READY

1  redis and the engine start while the database is brought up to date
2  what needs the database starts; everything is awaited
3  the demo's jobs are deployed when asked for, and a one-time login is made
4  until Ctrl-C (SIGINT, SIGTERM, SIGHUP): programs that end are started again
5  every program is asked to end, redis last, because the others still write to it
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from controlplane.supervisor import programs
from controlplane.supervisor.children import Child
from controlplane.supervisor.layout import CHECKOUT, Layout
from controlplane.supervisor.programs import Program

START_WITHIN_S = 120.0
END_WITHIN_S = 8.0
REDIS_END_WITHIN_S = 3.0

Say = Callable[[str], None]


class StartFailed(Exception):
    """The platform could not be started; everything that ran has been ended."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the platform is to be found."""

    web_port: int
    engine_port: int
    control_port: int

    @property
    def web(self) -> str:
        """The dashboard."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def engine(self) -> str:
        """The engine's REST interface."""
        return f"http://127.0.0.1:{self.engine_port}"


class Platform:
    """The running platform."""

    def __init__(
        self,
        layout: Layout,
        addresses: Addresses,
        environment: Mapping[str, str],
        redis_binary: str,
        say: Say,
        *,
        demo: bool,
    ) -> None:
        self._layout = layout
        self._addresses = addresses
        self._environment = environment
        self._redis_binary = redis_binary
        self._say = say
        self._demo = demo
        self._children: list[Child] = []
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Start everything, and end everything when asked to. Raises StartFailed."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._ended.set)
        try:
            login = await self._unless_ended(self._start_all())
            if login is not None:
                self._greet(login)
                await self._ended.wait()
        finally:
            self._say("ending every process")
            await self._end_all()
            self._say("ended")

    async def _unless_ended(self, starting: Coroutine[None, None, str]) -> str | None:
        """What `starting` returns; None when Ctrl-C came first. Raises StartFailed."""
        start = asyncio.create_task(starting)
        ended = asyncio.create_task(self._ended.wait())
        await asyncio.wait({start, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not start.done():
            start.cancel()
            with suppress(asyncio.CancelledError):
                await start
            return None
        return start.result()

    async def _start_all(self) -> str:
        try:
            async with asyncio.timeout(START_WITHIN_S):
                return await self._start_in_order()
        except TimeoutError:
            late = [child for child in self._children if not await child.program.is_ready()]
            what = "; ".join(f"{child.program.name}: {child.last_line()}" for child in late)
            msg = (
                f"the platform did not start within {START_WITHIN_S:.0f} s: {what or 'no answer'};"
                f" see the logs in {self._layout.home / 'logs'}"
            )
            raise StartFailed(msg) from None

    async def _start_in_order(self) -> str:
        # Step 1.
        redis = self._start(programs.redis(self._layout, self._redis_binary))
        engine = self._start(programs.engine(self._layout, self._addresses.engine_port))
        await asyncio.gather(redis.ready(), self._manage("bootstrap"))
        # Step 2.
        rest = [
            self._start(program)
            for program in (
                programs.web(self._addresses.web_port),
                programs.worker(),
                programs.beat(),
                programs.collector(),
                programs.control(self._addresses.control_port),
            )
        ]
        login = asyncio.create_task(self._manage("one_time_login"))
        await asyncio.gather(engine.ready(), *(child.ready() for child in rest))
        # Step 3.
        if self._demo:
            self._say((await self._manage("deploy_demo")).strip() or "demo jobs are deployed")
        return (await login).strip().splitlines()[-1]

    def _start(self, program: Program) -> Child:
        child = Child(program, self._environment, self._layout.log(program.name), self._say)
        self._children.append(child)
        child.start()
        return child

    async def _manage(self, command: str) -> str:
        """Run a management command to its end; what it answers. Raises StartFailed.

        Only what it complains of is logged: its answer may be a login link.
        """
        process = await asyncio.create_subprocess_exec(
            *programs.manage(command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=CHECKOUT,
            env=dict(self._environment),
            start_new_session=True,
        )
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        with self._layout.log(command).open("ab") as log:
            log.write(err)
        if process.returncode:
            lines = err.decode(errors="replace").strip().splitlines() or ["no message"]
            msg = f"{command} failed: {lines[-1]}; see {self._layout.log(command)}"
            raise StartFailed(msg)
        return out.decode(errors="replace")

    def _greet(self, login: str) -> None:
        path = login if login.startswith("/") else f"/{login}"
        self._say(f"READY {self._addresses.web}{path}")
        for line in (
            "the link logs in once, within 15 minutes; `manage.py one_time_login` makes another",
            f"engine  {self._addresses.engine}",
            f"home    {self._layout.home} (logs in logs/)",
            "Ctrl-C ends every process; jobs go on from their last checkpoint at the next start",
        ):
            self._say(line)

    async def _end_all(self) -> None:
        others = [child for child in self._children if child.program.name != "redis"]
        redis = [child for child in self._children if child.program.name == "redis"]
        await _end(others, END_WITHIN_S)
        await _end(redis, REDIS_END_WITHIN_S)


async def _end(children: Sequence[Child], patience_s: float) -> None:
    await asyncio.gather(*(child.end(patience_s) for child in children))
