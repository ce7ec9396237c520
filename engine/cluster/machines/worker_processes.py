"""Worker processes of a task manager: started ahead of need, so that a job restarts in no time.

    spare: interpreter up, modules imported ──one line of orders──▶ worker of an attempt

A cold start costs half a second of processor time, and several seconds on a busy machine: too long
for a job that only lost a worker. So spares wait. When another task manager is lost, this one's
workers start again and take over those of the other: so there are up to two spares per worker that
runs, within the slots. They are started one by one after a pause, not to compete with the job that
is starting.

Order    threads that start processes live as long as the task manager: on Linux a child dies with
         the *thread* that started it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from json import dumps
from pathlib import Path

import psutil

from engine.runtime.control import StartWorker

log = logging.getLogger(__name__)

SPARE_PAUSE_S = 2.0

POLARS_THREADS = "1"
"""A slot is one core's worth: with batches of this size a second thread only costs hand-overs."""


class Worker:
    """One worker process with its orders."""

    def __init__(self, spec: StartWorker, process: subprocess.Popen[bytes]) -> None:
        self.spec = spec
        self.process = process
        self.use = psutil.Process(process.pid)

    @property
    def key(self) -> str:
        """What heartbeats call it."""
        return f"{self.spec.attempt_id}/{self.spec.slot}"

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        code = self.process.wait()
        if self.process.stdin:
            with suppress(OSError):
                self.process.stdin.close()
        return code


def spares_wanted(running: int, slots: int) -> int:
    """How many spares to keep beside so many workers.

    >>> [spares_wanted(running, slots=4) for running in range(5)]
    [1, 2, 4, 4, 4]
    """
    return max(1, min(2 * running, slots))


class WorkerProcesses:
    """Starts workers; keeps spares."""

    def __init__(self, runtime: Path, slots: int) -> None:
        self._runtime = runtime
        self._slots = slots
        self._spares: deque[subprocess.Popen[bytes]] = deque()
        self._running: list[subprocess.Popen[bytes]] = []
        self._changing = threading.Lock()
        self._wanted = threading.Event()
        self._pause = threading.Event()
        self._wanted.set()
        threading.Thread(target=self._keep_spares, name="spares", daemon=True).start()

    def start(self, spec: StartWorker) -> Worker:
        """Turn a spare, or a new process, into a worker. Main thread. Raises OSError."""
        with self._changing:
            process = self._ordered(spec)
            self._running.append(process)
        self._wanted.set()
        return Worker(spec, process)

    def _ordered(self, spec: StartWorker) -> subprocess.Popen[bytes]:
        while self._spares and not spec.python:  # spares are of the engine's interpreter
            if _order(spare := self._spares.popleft(), spec):
                return spare
        process = self._launch(spec.python or sys.executable)
        _order(process, spec)
        return process

    def _keep_spares(self) -> None:
        """Runs for ever: what it has started would die with it."""
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self._pause.wait(SPARE_PAUSE_S)
            try:
                if self._add_spare():
                    self._wanted.set()
            except OSError as error:
                log.warning("a spare worker cannot be started: %s", error)

    def _add_spare(self) -> bool:
        """Start one more spare, if there are too few; whether there are still too few."""
        with self._changing:
            self._running = [process for process in self._running if process.poll() is None]
            missing = spares_wanted(len(self._running), self._slots) - len(self._spares)
            if missing > 0:
                self._spares.append(self._launch(sys.executable))
        return missing > 1

    def _launch(self, python: str) -> subprocess.Popen[bytes]:
        # The command is ours; what it runs is the job that a person submitted.
        return subprocess.Popen(  # noqa: S603
            [python, "-m", "engine.runtime.worker", str(self._runtime)],
            stdin=subprocess.PIPE,
            env=os.environ | {"POLARS_MAX_THREADS": POLARS_THREADS},
        )


def _order(process: subprocess.Popen[bytes], spec: StartWorker) -> bool:
    """Write the orders; False when the process is gone."""
    assert process.stdin is not None
    try:
        process.stdin.write(dumps(asdict(spec)).encode() + b"\n")
        process.stdin.flush()
    except OSError:
        process.wait()
        return False
    return process.poll() is None
