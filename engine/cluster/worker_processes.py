"""Worker processes of a task manager: started ahead of need, so that a job restarts in no time.

    spare: interpreter up, modules imported ──one line of orders──▶ worker of an attempt

A cold start costs half a second of processor time, and several seconds on a busy machine: too long
for a job that only lost a worker. So a spare waits; once it is used, the next one is started after
a pause, not to compete with the job that is starting.

Order    threads that start processes live as long as the task manager: on Linux a child dies with
         the *thread* that started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from json import dumps
from pathlib import Path

import psutil

from engine.runtime.control import StartWorker

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


class WorkerProcesses:
    """Starts workers; keeps one spare."""

    def __init__(self, runtime: Path) -> None:
        self._runtime = runtime
        self._spare: subprocess.Popen[bytes] | None = None
        self._changing = threading.Lock()
        self._wanted = threading.Event()
        self._pause = threading.Event()
        self._wanted.set()
        threading.Thread(target=self._keep_spare, name="spares", daemon=True).start()

    def start(self, spec: StartWorker) -> Worker:
        """Turn the spare, or a new process, into a worker. Main thread. Raises OSError."""
        with self._changing:
            process, self._spare = self._spare, None
        self._wanted.set()
        if process is None or not _order(process, spec):
            process = self._launch()
            _order(process, spec)
        return Worker(spec, process)

    def _keep_spare(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self._pause.wait(SPARE_PAUSE_S)
            with self._changing:
                if self._spare is None:
                    self._spare = self._launch()

    def _launch(self) -> subprocess.Popen[bytes]:
        # The command is ours; what it runs is the job that a person submitted.
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "engine.runtime.worker", str(self._runtime)],
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
