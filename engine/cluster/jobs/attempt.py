"""One deployment of a job: its workers and subtasks, and where each of them stands.

    worker     started ─▶ connected (Prepare) ─▶ ready ─ all ready ─▶ Run ─▶ … ─▶ gone
    subtask    SCHEDULED ─▶ DEPLOYING ─▶ INITIALIZING ─▶ RUNNING ─▶ FINISHED | CANCELED | FAILED

Bookkeeping only: the master decides, the fleet starts and kills.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.checkpoint.coordination.stats import RestoredCheckpoint
from engine.cluster.machines.control_server import Peer
from engine.cluster.machines.scheduler import Allocation
from engine.cluster.store.rows import ProcessRow, SnapshotRow
from engine.graph.jobgraph import TaskId
from engine.rest.model.jobs import TaskStatus
from engine.runtime.control import Found, Message

Latencies = Mapping[str, Mapping[str, float]]
"""By source vertex: statistics in ms."""


@dataclass(slots=True)
class TaskLife:
    """One subtask: its state, since when, and its latest numbers."""

    status: TaskStatus
    entered_ms: dict[TaskStatus, int]
    metrics: Mapping[str, float] = field(default_factory=dict)
    metrics_ms: int | None = None
    latencies: Latencies = field(default_factory=dict)
    input_ended: bool = False
    """It has read all its input, and only takes part in snapshots."""

    def move(self, to: TaskStatus, now_ms: int) -> None:
        """Enter a state; a subtask that has ended stays as it is."""
        if not self.status.terminal and self.status is not to:
            self.status = to
            self.entered_ms[to] = now_ms


@dataclass(slots=True)
class WorkerLife:
    """One worker: what is known of it so far."""

    allocation: Allocation
    process: ProcessRow | None = None
    peer: Peer | None = None
    alive: bool = False
    """Its process was asked for, and is not known to be gone."""
    ready: bool = False


@dataclass(slots=True)
class Attempt:
    """All workers and subtasks of one deployment."""

    id: str
    number: int
    """0 for the first."""
    started_ms: int
    workers: dict[int, WorkerLife]
    tasks: dict[TaskId, TaskLife]
    restored_from: SnapshotRow | None = None
    """The snapshot of this job that it goes on from; None at the first start."""
    restored: RestoredCheckpoint | None = None
    """What it starts from, once that has been read; also a snapshot of another job."""
    running: bool = False
    finishing: bool = False
    """All work is done and committed: its workers only have to end."""
    ending: bool = False
    """It failed or was cancelled: its workers are being killed."""
    questions: dict[int, asyncio.Future[Found | None]] = field(default_factory=dict)
    """What its workers were asked; None is the answer of one that is gone."""

    @classmethod
    def begin(
        cls,
        attempt_id: str,
        number: int,
        allocations: Sequence[Allocation],
        tasks: Sequence[TaskId],
        now_ms: int,
    ) -> Attempt:
        """An attempt that has its slots."""
        return cls(
            attempt_id,
            number,
            now_ms,
            {held.index: WorkerLife(held) for held in allocations},
            {
                task: TaskLife(TaskStatus.SCHEDULED, {TaskStatus.SCHEDULED: now_ms})
                for task in tasks
            },
        )

    def __repr__(self) -> str:
        phases = {"ending": self.ending, "finishing": self.finishing, "running": self.running}
        phase = next((name for name, reached in phases.items() if reached), "starting")
        return f"Attempt({self.id[:8]}, #{self.number}, {phase}, {len(self.workers)} workers)"

    @property
    def all_ready(self) -> bool:
        """Whether every worker has restored its state."""
        return all(worker.ready for worker in self.workers.values())

    @property
    def all_gone(self) -> bool:
        """Whether no worker runs, or will run."""
        return not any(worker.alive for worker in self.workers.values())

    @property
    def all_finished(self) -> bool:
        """Whether every subtask has committed everything and ended."""
        return all(task.status is TaskStatus.FINISHED for task in self.tasks.values())

    def tasks_in(self, slot: int) -> Iterator[tuple[TaskId, TaskLife]]:
        """Subtasks of one slot."""
        return (item for item in self.tasks.items() if item[0].subtask == slot)

    def move_slot(self, slot: int, to: TaskStatus, now_ms: int) -> None:
        """Every subtask of a slot enters a state."""
        for _, task in self.tasks_in(slot):
            task.move(to, now_ms)

    def move_all(self, to: TaskStatus, now_ms: int) -> None:
        """Every subtask enters a state."""
        for task in self.tasks.values():
            task.move(to, now_ms)

    def send(self, message: Message) -> None:
        """Tell every worker."""
        for worker in self.workers.values():
            if worker.peer is not None:
                worker.peer.send(message)

    def on_found(self, found: Found) -> None:
        """A worker has answered; the question may have been given up."""
        question = self.questions.pop(found.number, None)
        if question is not None and not question.done():
            question.set_result(found)

    def give_up_questions(self) -> None:
        """Nobody will answer any more."""
        for question in self.questions.values():
            if not question.done():
                question.set_result(None)
        self.questions.clear()

    def where(self, task: TaskId) -> str:
        """Name of the task manager that runs a subtask."""
        return self.workers[task.subtask].allocation.task_manager
