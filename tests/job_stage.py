"""One job on a fleet whose task managers and workers are played by the test.

What the master sends lies in the peers' `got`; what they answer is said by the test, so every
order of events can be had, without a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.checkpoint.format.entries import OperatorPart, SubtaskSnapshot
from engine.cluster.jobs.deployment import Surroundings
from engine.cluster.jobs.life import JobLife
from engine.cluster.jobs.master import JobMaster
from engine.cluster.jobs.operations import Operations, What
from engine.cluster.jobs.restart import RestartPolicy
from engine.cluster.jobs.restart_strategies import FixedDelay
from engine.cluster.machines.fleet import Fleet
from engine.cluster.snapshots.job_snapshots import SnapshotSettings
from engine.cluster.store.rows import JobRow
from engine.cluster.store.store import Store
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.graph.plan import OperatorKind, OperatorPlan, Plan, StatePlan, VertexPlan
from engine.operators.sources.source import SplitState
from engine.rest.model.jobs import JobStatus
from engine.rest.model.operations import TriggerStatus
from engine.runtime import control
from engine.testing.cluster import PATIENCE_S

JOB, VERTEX = "ab" * 16, "cd" * 16
PLAN = Plan(
    name="numbers",
    max_parallelism=128,
    checkpoint_interval_ms=None,
    vertices=(
        VertexPlan(
            VERTEX,
            "numbers",
            2,
            (
                OperatorPlan(
                    "numbers",
                    "n",
                    OperatorKind.SOURCE,
                    "source",
                    states=(StatePlan("last", "value", {"k": "String"}, {"value": "Int64"}),),
                ),
            ),
            watermark_group="numbers",
        ),
    ),
    edges=(),
)


class PlayedPeer:
    """A task manager or worker at the other end of the control channel."""

    def __init__(self, fleet: Fleet, hello) -> None:
        self.hello = hello
        self.got: list[control.Message] = []
        self.is_cut = False
        self._fleet = fleet
        fleet.on_peer(self)

    def send(self, message: control.Message) -> None:
        self.got.append(message)

    def cut(self) -> None:
        self.is_cut = True

    def say(self, message: control.Message) -> None:
        self._fleet.on_message(self, message)

    def of(self, kind: type) -> list:
        return [message for message in self.got if isinstance(message, kind)]


class Stage:
    """A master, its store and fleet, and one played task manager."""

    def __init__(
        self,
        home: Path,
        attempts: int = 9,
        timeout_ms: int = 60_000,
        begin: str | None = None,
        next_id: int = 1,
    ) -> None:
        """`timeout_ms`: of snapshots; `begin`: the snapshot that the job starts from."""
        self.home = home
        self.attempts = attempts
        self.timeout_ms = timeout_ms
        self.store = Store(home / "engine.db")
        self.fleet = Fleet(self.store, lambda: self.master.on_slots())
        self.operations = Operations(self.store, lambda _job: self.master.cancel())
        life = JobLife.begin(1)
        self.store.add_job(
            JobRow(
                JOB,
                "numbers",
                life.status,
                life.entered_ms,
                1,
                str(home),
                str(home),
                restore_path=begin,
                next_checkpoint_id=next_id,
            )
        )
        self.master = self.new_master()
        self.task_manager = PlayedPeer(self.fleet, control.TaskManagerHello("tm-1", 0, 2, "h"))

    def restart_job_manager(self) -> None:
        """The job manager and all that it started are gone; its successor recovers the job."""
        self.operations.close_left_over()
        self.fleet = Fleet(self.store, lambda: self.master.on_slots())
        self.master = self.new_master()
        self.master.recover()
        self.task_manager = PlayedPeer(self.fleet, control.TaskManagerHello("tm-1", 0, 2, "h"))

    def new_master(self) -> JobMaster:
        (row,) = self.store.jobs()
        directory = str(self.home / "checkpoints")
        config = CheckpointConfig(directory, interval_ms=None, timeout_ms=self.timeout_ms)
        around = Surroundings(self.store, self.fleet, self.home, self.home, 100)
        return JobMaster(
            row,
            PLAN,
            SnapshotSettings(config),
            RestartPolicy(FixedDelay(self.attempts, wait_ms=0)),
            around,
            self.operations.on_snapshot,
            self.on_end,
        )

    def on_end(self, master: JobMaster) -> None:
        self.operations.on_end(JOB, master.life.status)

    @property
    def status(self) -> JobStatus:
        return self.master.life.status

    def started(self) -> list[control.StartWorker]:
        return self.task_manager.of(control.StartWorker)

    def started_in(self, attempt: int) -> list[control.StartWorker]:
        """The workers of an attempt, 1 for the first."""
        ids = list(dict.fromkeys(spec.attempt_id for spec in self.started()))
        return [spec for spec in self.started() if ids.index(spec.attempt_id) == attempt - 1]

    async def workers(self, attempt: int = 1, count: int = 2) -> list[PlayedPeer]:
        """The workers of an attempt, connected."""
        await until(lambda: len(self.started_in(attempt)) == count)
        return [
            PlayedPeer(self.fleet, control.WorkerHello(spec.attempt_id, spec.slot, 0))
            for spec in self.started_in(attempt)
        ]

    async def running(self, attempt: int = 1, count: int = 2) -> list[PlayedPeer]:
        """The workers of an attempt, processing."""
        workers = await self.workers(attempt, count)
        for worker in workers:
            worker.say(control.WorkerReady())
        assert self.status is JobStatus.RUNNING
        return workers

    def gone(self, worker: PlayedPeer, code: int = -9) -> None:
        attempt_id, slot = worker.hello.attempt_id, worker.hello.slot
        self.task_manager.say(control.WorkerExited(attempt_id, slot, 0, code))

    def request(
        self,
        kind: SnapshotKind,
        then: AfterBarrier = AfterBarrier.CONTINUE,
        what: What | None = None,
    ) -> str:
        if what is None:
            what = What.CHECKPOINT if kind is SnapshotKind.CHECKPOINT else What.SAVEPOINT
            what = what if then is AfterBarrier.CONTINUE else What.STOP
        trigger, _ = self.operations.begin(what, JOB, None)
        self.master.request(SnapshotRequest(trigger, kind, then, str(self.home / "savepoints")))
        return trigger

    def operation(self, trigger: str) -> TriggerStatus:
        """Where a request stands, as its client sees it."""
        return self.operations.status(trigger, "operation", JOB)

    async def failure(self, trigger: str) -> str:
        """Why a request came to nothing."""
        await until(lambda: self.operation(trigger).done)
        return str(self.operation(trigger).failure)

    async def finish(self, workers: list[PlayedPeer]) -> None:
        """Every subtask has committed what is complete, and ends."""
        await until(lambda: bool(workers[0].of(control.Completed)))
        for worker in workers:
            worker.say(control.TaskFinished(VERTEX, worker.hello.slot))
        for worker in workers:
            self.gone(worker, code=0)
        await until(lambda: self.status is JobStatus.FINISHED)


async def until(so: Callable[[], bool]) -> None:
    """Let the event loop work until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not so():
            await asyncio.sleep(0.001)


def acknowledge(workers: list[PlayedPeer], checkpoint_id: int | None = None) -> int:
    """Every subtask has stored its part of a snapshot: if not said, the one triggered last."""
    checkpoint_id = checkpoint_id or workers[0].of(control.Trigger)[-1].checkpoint_id
    for worker in workers:
        slot = worker.hello.slot
        splits = {f"split-{slot}": SplitState(position=10 * checkpoint_id + slot)}
        part = OperatorPart("numbers", Micros(0), splits=splits)
        stored = SubtaskSnapshot(TaskId(VERTEX, slot), checkpoint_id, (part,))
        worker.say(control.Acknowledged(checkpoint_id, stored.to_json()))
    return checkpoint_id


@contextmanager
def no_room(store: Store) -> Iterator[None]:
    """Let nothing be written to the store."""
    store._db.execute("PRAGMA query_only=ON")
    yield
    store._db.execute("PRAGMA query_only=OFF")
