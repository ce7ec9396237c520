"""The embedded cluster: a whole engine around one job, inside the program that describes it.

    python job.py
     ├─ main thread      the job file; then whoever waits for the job
     ├─ cluster thread   job manager with REST on a free loopback port
     ├─ broom            removes the folder when everything else is gone
     └─ task manager ──▶ workers

Guarantee  after the block none of its processes runs and its folder is gone; if the program is
           killed, its processes die with it and the broom removes the folder.
Order      the cluster thread starts all processes, and outlives them: on Linux a child dies with
           the thread that started it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from engine.checkpoint.restoring.inputs import Inputs, Positions, look
from engine.checkpoint.restoring.starts import starts_of
from engine.cluster.home import FOLDERS, LONGEST_RUNTIME_PATH
from engine.cluster.jobmanager import MAX_ROWS, JobManager, Options, listen
from engine.cluster.jobs.master import JobMaster
from engine.cluster.programs.artifacts import Built
from engine.cluster.programs.build import GRAPH, PLAN
from engine.errors import InternalError
from engine.graph.jobgraph import JobGraph
from engine.graph.plan import plan_of
from engine.rest.model.requests import RunRequest

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
PREFIX = "headwater-"
SAVEPOINTS = "savepoints"
"""Beside the job's outputs: they are a person's, and outlive the cluster."""
CLOSE_S = 15.0


class EmbeddedCluster:
    """A job manager in a thread of this process, and as many slots as a job needs."""

    def __init__(self, slots: int) -> None:
        self._home = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._runtime = self._home / "run"
        if len(str(self._runtime)) > LONGEST_RUNTIME_PATH:
            self._runtime = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))  # short
        self._runtime.mkdir(mode=0o700, exist_ok=True)
        self._broom = _take_broom(self._home, self._runtime)
        self._listener = listen(LOOPBACK, 0)
        self._slots = slots
        self._ready = threading.Event()
        self._manager: JobManager | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="embedded cluster", daemon=True)

    @property
    def url(self) -> str:
        """Address of the REST interface."""
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        self._check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._manager is not None and self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._manager.ask_to_end)
        self._thread.join(CLOSE_S)
        self._listener.close()
        for folder in (self._home, self._runtime):
            shutil.rmtree(folder, ignore_errors=True)
        self._broom.communicate()

    def submit(self, graph: JobGraph, content: bytes, request: RunRequest) -> str:
        """Start a job, given with its pickled form; return its id. Raises RestoreError."""
        starts = starts_of(request.program.settings)

        async def build(folder: Path, positions: Positions) -> Built:
            return _build(graph, content, folder, look(graph, positions, starts))

        return self.call(lambda manager: manager.jobs.submit(request, build))

    def look(self, job_id: str, see: Callable[[JobMaster], T]) -> T:
        """Read something of a job, between two steps of the job manager."""

        async def seen(manager: JobManager) -> T:
            return see(manager.jobs.find(job_id))

        return self.call(seen)

    def call(self, what: Callable[[JobManager], Coroutine[Any, Any, T]]) -> T:
        """Run something on the cluster thread and wait for it."""
        self._check()
        assert self._manager is not None
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(what(self._manager), self._loop).result()

    def _check(self) -> None:
        if self._error is not None:
            msg = f"embedded cluster ended: {type(self._error).__name__}: {self._error}"
            raise InternalError(msg) from self._error

    def _live(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 the edge of the thread: `call` raises it
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        for folder in FOLDERS:
            (self._home / folder).mkdir(exist_ok=True)
        options = Options(
            home=self._home,
            savepoints=Path(os.environ.get("HEADWATER_HOME", ".headwater")).absolute() / SAVEPOINTS,
            host=LOOPBACK,
            port=0,
            runtime=self._runtime,
            task_managers=1,
            slots=self._slots,
            max_rows=MAX_ROWS,
            token=None,
            environment=_environment(),
        )
        self._loop = asyncio.get_running_loop()
        self._manager = JobManager(options)
        self._loop.call_soon(self._ready.set)
        await self._manager.run(self._listener)


def _build(graph: JobGraph, content: bytes, folder: Path, inputs: Inputs) -> Built:
    """Leave the graph where workers look for it; they import what lies beside the job file."""
    plan = plan_of(graph)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / GRAPH).write_bytes(content)
    (folder / PLAN).write_text(plan.to_json())
    return Built(folder, Path(sys.path[0]).absolute(), plan, inputs=inputs)


def _environment() -> Mapping[str, str]:
    """Let the processes import what this one can, from the same places in the same order."""
    places = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    return {**os.environ, "PYTHONPATH": places, "PYTHONSAFEPATH": "1"}


def _take_broom(*folders: Path) -> subprocess.Popen[bytes]:
    """Start the process that removes folders when this one is gone."""
    return subprocess.Popen(  # noqa: S603  the command is ours
        [sys.executable, "-m", "engine.cluster.machines.broom", *map(str, folders)],
        stdin=subprocess.PIPE,
        env=_environment(),
        start_new_session=True,
    )
