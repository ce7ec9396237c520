"""The deployment of one attempt: brings its workers up in two phases, and takes them down.

    begin ─▶ read the manifest ─▶ start workers ─▶ each gets Prepare ─▶ all ready ─▶ Run
    end   ─▶ kill workers ─▶ all gone ─▶ over

Order    two phases, because a sink recovers in the first one: no subtask of the job may write
         before every one has restored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.checkpoint.coordination.stats import RestoredCheckpoint
from engine.checkpoint.restoring.inputs import begun
from engine.checkpoint.restoring.renames import Renames, renames_of
from engine.checkpoint.restoring.restore import SubtaskRestore, assign, load_manifest
from engine.clock import now_ms
from engine.cluster.jobs import failures
from engine.cluster.jobs.attempt import Attempt, Latencies
from engine.cluster.jobs.beginnings import beginnings_of
from engine.cluster.jobs.read_limits import ReadLimits
from engine.cluster.machines.control_server import Peer
from engine.cluster.machines.fleet import Fleet
from engine.cluster.programs.artifacts import graph_file
from engine.cluster.store.rows import JobRow, ProcessRow
from engine.cluster.store.store import Store
from engine.elements import Micros, SnapshotKind
from engine.errors import HeadwaterError
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan
from engine.graph.rescaling import parallelism_of
from engine.rest.model.jobs import Failure, TaskStatus
from engine.runtime import control
from engine.runtime.watermark_groups import WatermarkGroups

DIGITS = 8
"""Of a job's id, in the names of its logs."""

Restores = Mapping[TaskId, SubtaskRestore]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every job shares."""

    store: Store
    fleet: Fleet
    runtime: Path
    """Folder of the sockets."""
    logs: Path
    max_rows: int
    embedded: bool = False
    """Whether workers print where the job file does, instead of into logs."""


def log_name(job_id: str, slot: int) -> str:
    """The file in the folder of logs that takes what a job's workers print.

    >>> log_name("6f1ed002ab5595859014ebf0951522d9", 0)
    'job-6f1ed002-0.log'
    """
    return f"job-{job_id[:DIGITS]}-{slot}.log"


class DeploymentListener(Protocol):
    """The job, told how its attempt fares. Called on the event loop."""

    def on_running(self) -> None:
        """Every subtask processes."""

    def on_report(self, report: control.Metrics) -> None:
        """A worker has told its numbers."""

    def on_snapshot_message(self, message: control.Message) -> None:
        """A worker said something that the snapshots need."""

    def on_failure(self, failure: Failure) -> None:
        """Something failed; possibly more than once per attempt."""

    def on_over(self) -> None:
        """No worker runs any more. Called once."""


class Deployment:
    """Runs one attempt. The fleet tells it what workers do."""

    def __init__(
        self,
        attempt: Attempt,
        row: JobRow,
        plan: Plan,
        around: Surroundings,
        listener: DeploymentListener,
        limits: ReadLimits,
    ) -> None:
        self.attempt = attempt
        self._row = row
        self._plan = plan
        self._around = around
        self._listener = listener
        self._limits = limits
        self._restores: Restores = {}
        self._groups = WatermarkGroups(plan.vertices)
        self._over = False

    async def begin(self, folder: str | None) -> None:
        """Start the workers, to restore from a snapshot's folder or from nothing."""
        try:
            if folder is not None:
                await self._read(folder)
        except HeadwaterError as error:
            self._listener.on_failure(failures.raised(error, now_ms()))
            return
        if self.attempt.ending:
            return
        for slot, worker in self.attempt.workers.items():
            worker.alive = True
            self._around.fleet.start(worker.allocation, self._start_worker(slot), self)
        self.attempt.move_all(TaskStatus.DEPLOYING, now_ms())

    async def _read(self, folder: str) -> None:
        manifest = await asyncio.to_thread(load_manifest, folder)
        # Once only: what the job itself has stored has the new names already.
        given = folder == self._row.restore_path
        renames = renames_of(self._row.settings) if given else Renames()
        if given:
            manifest = begun(manifest, beginnings_of(Path(self._row.folder)), renames)
        self._restores = assign(manifest, folder, self._plan, renames)
        is_savepoint = manifest.kind is SnapshotKind.SAVEPOINT
        self.attempt.restored = RestoredCheckpoint(
            manifest.checkpoint_id, now_ms(), is_savepoint, folder
        )

    def end(self) -> None:
        """Kill the workers; `on_over` follows when all are gone."""
        self.attempt.ending = True
        self._around.fleet.kill(self.attempt.id)
        self._check_over()

    def send(self, message: control.Message) -> None:
        """Tell every worker."""
        self.attempt.send(message)

    def _start_worker(self, slot: int) -> control.StartWorker:
        return control.StartWorker(
            job_id=self._row.job_id,
            attempt_id=self.attempt.id,
            slot=slot,
            graph=str(graph_file(self._row.folder)),
            code=self._row.code,
            max_rows=self._around.max_rows,
            parallelism=parallelism_of(self._plan),
            log=self._log(slot),
            python=self._row.python,
        )

    def _log(self, slot: int) -> str:
        if self._around.embedded:
            return ""
        return str(self._around.logs / log_name(self._row.job_id, slot))

    # From the fleet.

    def on_worker_started(self, slot: int, process: ProcessRow) -> None:
        """The process exists."""
        self.attempt.workers[slot].process = process

    def on_worker_connected(self, slot: int, peer: Peer) -> None:
        """Let it restore, unless it came too late."""
        if self.attempt.ending:
            peer.cut()
            return
        self.attempt.workers[slot].peer = peer
        self.attempt.move_slot(slot, TaskStatus.INITIALIZING, now_ms())
        restores = {
            f"{task.vertex}/{task.subtask}": restore.to_json()
            for task, restore in self._restores.items()
            if task.subtask == slot
        }
        peer.send(control.Prepare(restores))
        for limit in self._limits.messages(self.attempt):
            peer.send(limit)

    def on_worker_message(self, slot: int, message: control.Message) -> None:
        """Sort what a worker says."""
        match message:
            case control.WorkerReady():
                self._on_ready(slot)
            case control.Metrics(subtasks, latencies):
                self._on_metrics(subtasks, latencies)
                self._listener.on_report(message)
            case control.SourceProgress(vertex, subtask, watermark):
                self._align(TaskId(vertex, subtask), Micros(watermark))
            case control.Found():
                self.attempt.on_found(message)
            case control.TaskFinished(vertex, subtask):
                self._on_finished(TaskId(vertex, subtask))
            case control.Failed():
                self._on_failed(slot, message)
            case _ if not self.attempt.ending:
                self._note_end_of_input(message)
                self._listener.on_snapshot_message(message)

    def on_worker_gone(self, slot: int, reason: str) -> None:
        """The process does not run any more."""
        worker = self.attempt.workers[slot]
        worker.alive, worker.peer = False, None
        self.attempt.give_up_questions()
        if not self.attempt.finishing:
            host = worker.allocation.task_manager
            self._listener.on_failure(failures.worker_lost(reason, now_ms(), host))
        self._check_over()

    def _on_ready(self, slot: int) -> None:
        attempt = self.attempt
        attempt.workers[slot].ready = True
        if attempt.ending or not attempt.all_ready:
            return
        if attempt.restored_from is not None and attempt.restored_from.ends_job:
            # Its sinks have committed what the snapshot staged: nothing else was left to do.
            self._finish()
            return
        attempt.running = True
        attempt.move_all(TaskStatus.RUNNING, now_ms())
        attempt.send(control.Run())
        self._listener.on_running()

    def _on_metrics(
        self, subtasks: Mapping[str, Mapping[str, float]], latencies: Mapping[str, Latencies]
    ) -> None:
        for name, numbers in subtasks.items():
            vertex, subtask = name.split("/")
            task = self.attempt.tasks[TaskId(vertex, int(subtask))]
            task.metrics, task.metrics_ms = numbers, now_ms()
            task.latencies = latencies.get(name, {})

    def _align(self, task: TaskId, watermark: Micros) -> None:
        aligned = self._groups.report(task, watermark)
        if aligned is not None:
            self.attempt.send(control.Align(aligned.group, aligned.lowest))

    def _note_end_of_input(self, message: control.Message) -> None:
        if isinstance(message, control.EndOfInputReached):
            self.attempt.tasks[TaskId(message.vertex, message.subtask)].input_ended = True
            self.send_limits()

    def send_limits(self) -> None:
        """Tell every worker how fast sources may read."""
        for limit in self._limits.messages(self.attempt):
            self.attempt.send(limit)

    def _on_finished(self, task: TaskId) -> None:
        self.attempt.tasks[task].move(TaskStatus.FINISHED, now_ms())
        if self.attempt.all_finished:
            self._finish()

    def _finish(self) -> None:
        self.attempt.finishing = True
        self.attempt.move_all(TaskStatus.FINISHED, now_ms())
        self.attempt.send(control.Stop())

    def _on_failed(self, slot: int, failed: control.Failed) -> None:
        host = self.attempt.workers[slot].allocation.task_manager
        task = None
        if failed.vertex is not None and failed.subtask is not None:
            task = TaskId(failed.vertex, failed.subtask)
            if not self.attempt.ending:
                self.attempt.tasks[task].move(TaskStatus.FAILED, now_ms())
        name = None if task is None else self._name(task)
        self._listener.on_failure(failures.reported(failed, name, host, now_ms()))

    def _name(self, task: TaskId) -> str:
        vertex = next(vertex for vertex in self._plan.vertices if vertex.id == task.vertex)
        place = f"({task.subtask + 1}/{vertex.parallelism})"
        return f"{vertex.name} {place} - execution #{self.attempt.number}"

    def _check_over(self) -> None:
        ending = self.attempt.ending or self.attempt.finishing
        if ending and self.attempt.all_gone and not self._over:
            self._over = True
            self._listener.on_over()
