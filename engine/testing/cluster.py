"""A real engine of its own for a test: job manager, task managers and workers as processes.

    with LocalCluster(tmp_path / "engine") as cluster:
        job = EngineClient(cluster.url)...
        cluster.kill_worker()              # kill -9; the job restarts from its latest checkpoint
        cluster.kill_job_manager()         # kill -9 ...
        cluster.restart_job_manager()      # ... and a new one at the same address, same home

Guarantee  after the block none of its processes runs, and if the test process dies, they die.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import psutil

from engine.clock import monotonic

PATIENCE_S = 180.0
"""Only what hangs takes that long, however busy the machine is."""
LOOK_S = 0.02

T = TypeVar("T")

WORKER, TASK_MANAGER = "engine.runtime.worker", "engine.cluster.taskmanager"


class LocalCluster:
    """Starts and ends the processes, and kills them on demand."""

    def __init__(
        self,
        home: Path,
        *,
        task_managers: int = 2,
        slots: int = 2,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`options` of the job manager; `environment`: variables that its processes have too."""
        self.home = home
        self.url = ""
        """Address of the REST interface; the same after a restart."""
        self._task_managers = task_managers
        self._slots = slots
        self._options = options
        self._environment = dict(environment or {})
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._seen: dict[int, psutil.Process] = {}

    def __enter__(self) -> LocalCluster:
        self.home.mkdir(parents=True, exist_ok=True)
        self.restart_job_manager()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def log(self) -> str:
        """What the job manager has printed."""
        return (self.home / "jobmanager.log").read_text(errors="replace")

    def job_manager(self) -> psutil.Process:
        """The process that `kill_job_manager` kills."""
        return psutil.Process(self._running().pid)

    def workers(self) -> list[psutil.Process]:
        """Worker processes of attempts, oldest first; not the spare ones, which have no job."""
        return [process for process in self.worker_processes() if _has_orders(process)]

    def worker_processes(self) -> list[psutil.Process]:
        """Workers of attempts and spare ones, oldest first."""
        return self._children(WORKER)

    def task_managers(self) -> list[psutil.Process]:
        """Task manager processes that run, oldest first."""
        return self._children(TASK_MANAGER)

    def kill_worker(self, index: int = 0) -> int:
        """Kill -9 the worker at a place in `workers()`; return its process id."""
        found = wait_until(lambda: self.workers()[index:], "a worker has a job")
        return self._kill(lambda: found[0])

    def kill_task_manager(self, index: int = 0) -> int:
        """Kill -9 a task manager; its workers die with it. Another one comes in a second."""
        return self._kill(lambda: self.task_managers()[index])

    def kill_job_manager(self) -> int:
        """Kill -9 the job manager; everything that it started dies with it."""
        self._children("")
        process = self._running()
        process.kill()
        _reap(process)
        return process.pid

    def restart_job_manager(self) -> None:
        """Start a job manager in the same home, at the same address."""
        command = [sys.executable, "-m", "engine.cluster.jobmanager", "--lifeline"]
        with (self.home / "jobmanager.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  the command is ours
                [
                    *command,
                    *("--home", str(self.home), "--port", str(self._port)),
                    *("--task-managers", str(self._task_managers), "--slots", str(self._slots)),
                    *self._options,
                ],
                env=os.environ | self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.url = wait_until(self._address, "the job manager is up")
        self._port = int(self.url.rsplit(":", 1)[1])

    def left_over(self) -> list[psutil.Process]:
        """Processes of this cluster that run although it was closed."""
        return [process for process in self._seen.values() if _runs(process)]

    def close(self) -> None:
        """End everything, as Ctrl-C does."""
        self._children("")
        process = self._running()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
        _reap(process)
        wait_until(lambda: not self.left_over(), "every process is gone")

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the cluster is started by `with`"
        return self._process

    def _address(self) -> str | None:
        process = self._running()
        if process.poll() is not None:
            msg = f"the job manager ended with code {process.returncode}:\n{self.log}"
            raise RuntimeError(msg)
        try:
            published = json.loads((self.home / "jobmanager.json").read_text())
        except FileNotFoundError:
            return None
        return str(published["url"]) if published["pid"] == process.pid else None

    def _children(self, module: str) -> list[psutil.Process]:
        """Processes below the job manager that run a module."""
        try:
            found = psutil.Process(self._running().pid).children(recursive=True)
        except psutil.Error:
            return []
        self._seen |= {process.pid: process for process in found}
        matching = [process for process in found if module in _command(process)]
        return sorted(matching, key=lambda process: (process.create_time(), process.pid))

    def _kill(self, choose: Callable[[], psutil.Process]) -> int:
        process = choose()
        process.kill()
        return process.pid


def wait_until(look: Callable[[], T | None], what: str, timeout: float = PATIENCE_S) -> T:
    """Look again and again until there is something; raise TimeoutError when there is not."""
    pause = threading.Event()
    deadline = monotonic() + timeout
    while not (found := look()):
        if monotonic() > deadline:
            msg = f"after {timeout:g} s it is still not so that {what}"
            raise TimeoutError(msg)
        pause.wait(LOOK_S)
    return found


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    if process.stdin:
        process.stdin.close()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _has_orders(process: psutil.Process) -> bool:
    """Whether a worker belongs to an attempt: a spare one has no socket yet."""
    try:
        return bool(process.net_connections(kind="unix"))
    except psutil.Error:
        return False


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
