"""A task manager: a process that offers slots and runs one worker process per slot in use.

    job manager ◀──control socket──▶ task manager ──starts, watches, kills──▶ workers

    python -m engine.cluster.taskmanager --runtime-dir DIR --name tm-1 --slots 4

It holds no state of any job. When it loses the job manager it kills its workers, waits until they
are gone, and connects again: a task manager that says hello has no workers, so a new job manager
can start jobs again without asking what still runs. When it dies itself, its workers die with it.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil

from engine.cluster.machines.worker_processes import Worker, WorkerProcesses
from engine.errors import ConnectionLost
from engine.runtime.control import (
    Heartbeat,
    KillWorkers,
    ProcessUse,
    StartWorker,
    TaskManagerHello,
    Welcome,
    WorkerExited,
    WorkerStarted,
)
from engine.runtime.control_link import ControlLink
from engine.runtime.worker_lifeline import die_with_parent

log = logging.getLogger(__name__)

NOT_STARTED = 127
"""Exit code that shells give a command that cannot be started."""

RECONNECT_S = 0.25
"""Often enough that a restarted job manager finds its task managers before a person looks."""


class TaskManager:
    """Starts and kills workers as it is told."""

    def __init__(self, runtime: Path, name: str, slots: int) -> None:
        self._runtime = runtime
        self._hello = TaskManagerHello(name, os.getpid(), slots, socket.gethostname())
        self._processes = WorkerProcesses(runtime, slots)
        self._workers: dict[int, Worker] = {}
        self._changing = threading.Lock()
        self._itself = psutil.Process()
        self._pause = threading.Event()

    def serve_forever(self) -> None:
        """Serve one job manager after the other."""
        while True:
            try:
                self._serve(ControlLink(self._runtime))
            except ConnectionLost as lost:
                log.debug("%s", lost)
            self._kill(None)
            self._pause.wait(RECONNECT_S)

    def _serve(self, link: ControlLink) -> None:
        over = threading.Event()
        try:
            link.send(self._hello)
            for message in link.messages():
                match message:
                    case Welcome(heartbeat_ms):
                        self._begin_to_beat(link, over, heartbeat_ms / 1_000)
                    case StartWorker():
                        self._start(message, link)
                    case KillWorkers(attempt_id):
                        self._kill(attempt_id)
        finally:
            over.set()
            link.close()

    def _start(self, spec: StartWorker, link: ControlLink) -> None:
        try:
            worker = self._processes.start(spec)
        except OSError as error:
            log.error("worker of slot %d cannot be started: %s", spec.slot, error)
            link.send(WorkerExited(spec.attempt_id, spec.slot, 0, NOT_STARTED))
            return
        with self._changing:
            self._workers[worker.process.pid] = worker
        link.send(WorkerStarted(spec.attempt_id, spec.slot, worker.process.pid))
        threading.Thread(target=self._await, args=(worker, link), daemon=True).start()

    def _await(self, worker: Worker, link: ControlLink) -> None:
        code = worker.end()
        with self._changing:
            del self._workers[worker.process.pid]
        spec = worker.spec
        try:
            link.send(WorkerExited(spec.attempt_id, spec.slot, worker.process.pid, code))
        except ConnectionLost:
            log.debug("worker %s ended after the job manager was gone", worker.key)

    def _kill(self, attempt_id: str | None) -> None:
        """Kill the workers of an attempt, or all; wait until the processes are gone."""
        with self._changing:
            workers = list(self._workers.values())
        doomed = [worker for worker in workers if attempt_id in (None, worker.spec.attempt_id)]
        for worker in doomed:
            worker.process.kill()
        for worker in doomed:
            worker.process.wait()

    def _begin_to_beat(self, link: ControlLink, over: threading.Event, interval_s: float) -> None:
        beat = threading.Thread(target=self._beat, args=(link, over, interval_s), daemon=True)
        beat.start()

    def _beat(self, link: ControlLink, over: threading.Event, interval_s: float) -> None:
        try:
            while not over.wait(interval_s):
                with self._changing:
                    workers = list(self._workers.values())
                itself = _use(self._itself)
                uses = ((worker.key, _use(worker.use)) for worker in workers)
                if itself:
                    link.send(Heartbeat(itself, {key: use for key, use in uses if use}))
        except ConnectionLost:
            return  # the main thread has noticed too


def _use(process: psutil.Process) -> ProcessUse | None:
    try:
        memory = process.memory_info().rss
        return ProcessUse(process.pid, memory, process.cpu_percent())
    except psutil.Error:
        return None  # it ended a moment ago


def main(argv: Sequence[str] | None = None) -> int:
    """Run a task manager until it is killed."""
    parser = argparse.ArgumentParser(
        "headwater taskmanager", description="offer slots to a job manager"
    )
    parser.add_argument("--runtime-dir", type=Path, required=True, help="folder of the sockets")
    parser.add_argument("--name", default="tm-1", help="unique among the task managers")
    parser.add_argument("--slots", type=int, default=4, help="workers it may run at once")
    parser.add_argument("--log", type=Path, help="file for its own log, instead of stderr")
    parser.add_argument("--lifeline", action="store_true", help="die with the parent process")
    options = parser.parse_args(argv)
    logging.basicConfig(
        filename=options.log, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    if options.lifeline:
        die_with_parent()
    try:
        TaskManager(options.runtime_dir, options.name, options.slots).serve_forever()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
