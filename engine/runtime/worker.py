"""A worker process: one slice of a job, one thread per subtask.

    echo '{"job_id": …}' | python -m engine.runtime.worker RUNTIME_DIR     (StartWorker as JSON)

    load graph, listen ─▶ Prepare ─▶ restore and build tasks ─▶ WorkerReady
                          Run     ─▶ connect with the peers, process
                          Stop    ─▶ close tasks, exit 0          anything raises ─▶ Failed, exit 1

    main thread      messages of the job manager
    subtask threads  one per subtask, see worker_subtask.py
    storing threads  write snapshots, then acknowledge, see worker_storing.py
    looking thread   answers questions about live state
    reader threads   one per peer and direction

Order    no task processes before every task of the job is built, because sinks of subtask 0 recover
         in that step.
Errors   a worker never outlives its task manager, nor the connection to the job manager: whoever
         cannot hear "stop" must not go on writing.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.checkpoint.format.frozen import TaskSnapshot
from engine.checkpoint.format.writer import Chains, write_snapshot
from engine.checkpoint.restoring.restore import SubtaskRestore
from engine.checkpoint.storage.addresses import open_folder
from engine.clock import monotonic
from engine.elements import AfterBarrier, Barrier, Micros, SnapshotKind
from engine.errors import ConnectionLost, Domain, HeadwaterError
from engine.graph.jobgraph import JobGraph, TaskId
from engine.graph.rescaling import rescaled_graph
from engine.kernels import Loading
from engine.operators.contract import Operator
from engine.runtime import control
from engine.runtime.control_link import ControlLink
from engine.runtime.spec import TaskSpec
from engine.runtime.wiring import Wiring, wire
from engine.runtime.worker_dump import answer_dumps
from engine.runtime.worker_exchange import Exchange
from engine.runtime.worker_lifeline import follow_in_death, read_orders, watch_parent
from engine.runtime.worker_lookups import Lookups
from engine.runtime.worker_metrics import MetricReader, latencies_of
from engine.runtime.worker_storing import Storing
from engine.runtime.worker_subtask import Subtask

FAILED, ORPHANED = 1, 3
METRICS_S = 1.0
SPARE_S = 1.0
"""A spare that waits for longer may be needed for any job: it loads the compiled kernels too."""
KERNELS_S = 2.0
"""Enough to load kernels from their cache; if they are being compiled, plain ones do meanwhile."""
CLOSE_S = 5.0
LOST_PEER_S = 3.0
"""A lost peer is news that the job manager hears from the task manager, with the true cause, and
answers by killing us. Only if that does not happen do we fail by ourselves."""


class Worker:
    """Hosts the subtasks of one slot."""

    def __init__(
        self, runtime: Path, spec: control.StartWorker, link: ControlLink, kernels: Loading
    ) -> None:
        self._spec = spec
        self._link = link
        self._kernels = kernels
        self._wiring = self._load()
        self._lookups = Lookups(link.send)
        self._over = threading.Event()
        # Its reports are also signs of life, so they begin before a restore that may take long.
        self._measuring = threading.Thread(target=self._measure, name="metrics", daemon=True)
        self._failing = threading.Lock()
        slots = max(task.subtask for task in self._wiring.specs) + 1
        self._exchange = Exchange(runtime, spec.attempt_id, spec.slot, slots)
        self._subtasks = {
            task: Subtask(of_task, self, spec.max_rows)
            for task, of_task in self._wiring.specs.items()
            if task.subtask == spec.slot
        }
        self._chains = {task: Chains() for task in self._subtasks}
        self._storing = Storing(list(self._subtasks), self._store)
        self._is_compiled = any(
            isinstance(chained.operator, Operator) and chained.operator.compiled
            for subtask in self._subtasks.values()
            for chained in subtask.spec.vertex.operators
        )
        if self._is_compiled:
            kernels.want()

    def _load(self) -> Wiring:
        sys.path.insert(0, self._spec.code)
        with Path(self._spec.graph).open("rb") as file:
            # Made by our own build step from a file that a person chose to run.
            graph: JobGraph = pickle.load(file)  # noqa: S301
        graph = rescaled_graph(graph, self._spec.parallelism)
        return wire(graph, self._spec.job_id, self._spec.attempt_id)

    def describe(self) -> list[object]:
        """Every subtask in one line, for people who look for a fault."""
        return list(self._subtasks.values())

    # Main thread.

    def serve(self) -> int:
        """Do what the job manager says until it says stop; return the exit code."""
        for message in self._link.messages():
            match message:
                case control.Prepare(restores):
                    self._prepare(restores)
                case control.Run():
                    self._run()
                case control.Trigger():
                    self._trigger(message)
                case control.Align(group, lowest):
                    for subtask in self._subtasks.values():
                        if subtask.spec.watermark_group == group:
                            subtask.align(Micros(lowest))
                case control.ReadLimit(vertex, rate, reading, speed):
                    for task, subtask in self._subtasks.items():
                        if task.vertex == vertex:
                            subtask.limit(rate, reading, speed)
                case control.LookUp():
                    asked = TaskId(message.vertex, message.subtask)
                    self._lookups.begin(message, self._subtasks[asked])
                case control.Completed(checkpoint_id):
                    for subtask in self._subtasks.values():
                        subtask.complete(checkpoint_id)
                case control.Aborted(checkpoint_id):
                    self._storing.abort(checkpoint_id)
                    for subtask in self._subtasks.values():
                        subtask.abort(checkpoint_id)
                case control.Stop():
                    return self._stop()
        return ORPHANED

    def _prepare(self, restores: Mapping[str, Any]) -> None:
        self._measuring.start()
        for task, subtask in self._subtasks.items():
            found = restores.get(f"{task.vertex}/{task.subtask}")
            subtask.start(SubtaskRestore.from_json(found) if found else None)
        for subtask in self._subtasks.values():
            subtask.ready.wait()
        if self._is_compiled:
            self._kernels.wait(KERNELS_S)
        self._link.send(control.WorkerReady())

    def _run(self) -> None:
        mailboxes = {task: subtask.mailbox for task, subtask in self._subtasks.items()}
        ports = self._exchange.connect(self._wiring, mailboxes, self._on_lost)
        for task, subtask in self._subtasks.items():
            subtask.run(ports[task])

    def _trigger(self, message: control.Trigger) -> None:
        barrier = Barrier(
            message.checkpoint_id,
            SnapshotKind(message.kind),
            AfterBarrier(message.then),
            message.triggered_ms,
            message.folder,
            message.base,
        )
        for subtask in self._subtasks.values():
            subtask.trigger(barrier)

    def _stop(self) -> int:
        self._over.set()
        self._measuring.join(CLOSE_S)
        for subtask in self._subtasks.values():
            subtask.stop()
        for subtask in self._subtasks.values():
            subtask.join(CLOSE_S)
        self._exchange.close()
        return 0

    # Subtask threads.

    def snapshot_taken(self, snapshot: TaskSnapshot, sync_ms: int) -> None:
        """Store it on another thread, then acknowledge it."""
        self._storing.submit(snapshot, sync_ms)

    def source_progressed(self, task: TaskId, watermark: Micros) -> None:
        """Tell the job manager, which tells those that wait."""
        self._link.send(control.SourceProgress(task.vertex, task.subtask, watermark))

    def input_ended(self, task: TaskId) -> None:
        """Tell the job manager."""
        self._link.send(control.EndOfInputReached(task.vertex, task.subtask))

    def finished(self, task: TaskId) -> None:
        """Tell the job manager."""
        self._link.send(control.TaskFinished(task.vertex, task.subtask))

    def failed(self, spec: TaskSpec, operator: str | None, error: BaseException) -> None:
        """Tell the job manager and end the process: the job starts again from its last snapshot."""
        if isinstance(error, ConnectionLost):
            self._on_lost(error)
            return
        self._fail(error, spec.id, operator)

    # Storing threads.

    def _store(self, snapshot: TaskSnapshot, sync_ms: int) -> None:
        checkpoint_id = snapshot.barrier.checkpoint_id
        task = snapshot.task
        try:
            folder = open_folder(snapshot.barrier.folder)
            stored = write_snapshot(snapshot, folder, sync_ms, self._chains[task])
        except Exception as error:  # noqa: BLE001 the edge of the thread: everything is reported
            declined = control.Declined(checkpoint_id, task.vertex, task.subtask, str(error))
            self._link.send(declined)
        else:
            self._link.send(control.Acknowledged(checkpoint_id, stored.to_json()))

    # Any thread.

    def _on_lost(self, lost: ConnectionLost) -> None:
        if not self._over.wait(LOST_PEER_S):
            self._fail(lost, None, None)

    def _fail(self, error: BaseException, task: TaskId | None, operator: str | None) -> None:
        with self._failing:  # the first failure is the cause: nobody gets past it
            report_failure(self._link, error, task, operator)
            os._exit(FAILED)

    def _measure(self) -> None:
        readers = {
            task: MetricReader(subtask.spec, subtask.occupancy, monotonic())
            for task, subtask in self._subtasks.items()
        }
        over = False
        while not over:
            over = self._over.wait(METRICS_S)  # and then once more: the last numbers are whole
            now = monotonic()
            found = {task: subtask.metrics for task, subtask in self._subtasks.items()}
            numbers = {
                f"{task.vertex}/{task.subtask}": readers[task].read(
                    metrics, self._subtasks[task].queues(), now
                )
                for task, metrics in found.items()
                if metrics is not None
            }
            batches = {
                f"{task.vertex}/{task.subtask}": taken
                for task, subtask in self._subtasks.items()
                if (taken := subtask.batches.take())
            }
            latencies = {
                f"{task.vertex}/{task.subtask}": latencies_of(metrics)
                for task, metrics in found.items()
                if metrics is not None and metrics.latencies
            }
            self._link.send(control.Metrics(numbers, latencies, batches))


def report_failure(
    link: ControlLink, error: BaseException, task: TaskId | None = None, operator: str | None = None
) -> None:
    """Send why this process ends."""
    link.send(
        control.Failed(
            name=type(error).__name__,
            domain=error.domain if isinstance(error, HeadwaterError) else Domain.INTERNAL,
            message=str(error) or type(error).__name__,
            traceback="".join(traceback.format_exception(error)),
            vertex=task.vertex if task else None,
            subtask=task.subtask if task else None,
            operator=operator,
        )
    )


def main(argv: Sequence[str]) -> int:
    """Wait for orders, then run a worker until it is told to stop, killed, or cannot go on."""
    follow_in_death()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # a spare has nothing to say
    runtime = Path(argv[0])
    kernels = warm_up()
    orders = read_orders()
    if orders is None:
        return ORPHANED
    watch_parent()
    spec = control.StartWorker(**json.loads(orders))
    if spec.log:
        redirect_output(spec.log)
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115 for good
    try:
        link = ControlLink(runtime)
        link.send(control.WorkerHello(spec.attempt_id, spec.slot, os.getpid()))
    except ConnectionLost:
        return ORPHANED
    threading.excepthook = lambda args: _die(link, args.exc_value)
    try:
        worker = Worker(runtime, spec, link, kernels)
        answer_dumps(worker.describe)
        return worker.serve()
    except ConnectionLost:
        return ORPHANED
    except Exception as error:  # noqa: BLE001 the edge of the process: everything is reported
        report_failure(link, error)
        return FAILED


def warm_up() -> Loading:
    """Import what jobs are made of, while nobody waits for it; a moment later, kernels too."""
    importlib.import_module("engine.stream")
    kernels = Loading()
    later = threading.Timer(SPARE_S, kernels.want)
    later.daemon = True
    later.start()
    return kernels


def redirect_output(path: str) -> None:
    """Send what user code prints to the job's log."""
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)


def _die(link: ControlLink, error: BaseException | None) -> None:
    """A thread ended by surprise: the process must not go on without it."""
    if isinstance(error, ConnectionLost):
        os._exit(ORPHANED)
    if error is not None:
        report_failure(link, error)
    os._exit(FAILED)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of user code may still run; nothing of theirs may delay or survive the end.
    os._exit(code)
