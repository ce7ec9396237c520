"""A coordinator at its controls: a job with one source and two more subtasks, time in ms from 0."""

from __future__ import annotations

from engine.checkpoint.coordination.config import CheckpointConfig
from engine.checkpoint.coordination.coordinator import Coordinator
from engine.checkpoint.coordination.effects import Effect, OperationStatus, SnapshotRequest
from engine.checkpoint.coordination.failure import Ack
from engine.checkpoint.coordination.stats import CheckpointLog
from engine.checkpoint.format.entries import OperatorPart, SnapshotTiming, SubtaskSnapshot
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.graph.plan import EdgePlan, OperatorKind, OperatorPlan, Plan, VertexPlan

JOB = "0123456789abcdef0123456789abcdef"
PLAN = Plan(
    name="sums",
    max_parallelism=128,
    checkpoint_interval_ms=None,
    vertices=(
        VertexPlan("a", "read", 1, (OperatorPlan("read", "read", OperatorKind.SOURCE, "source"),)),
        VertexPlan("b", "sum", 2, (OperatorPlan("sum", "sum", OperatorKind.TRANSFORM, "sum"),)),
    ),
    edges=(EdgePlan("a", "b", "hash", 0),),
)
TASKS = [TaskId("a", 0), TaskId("b", 0), TaskId("b", 1)]


class Job:
    """A coordinator, what it wants done, and what the subtasks answer."""

    def __init__(self, *, first_id: int = 1, **config: int | None) -> None:
        settings: dict[str, int | None] = {"interval_ms": 100, "timeout_ms": 50, **config}
        self.log = CheckpointLog()
        self.coordinator = Coordinator(
            JOB,
            PLAN,
            CheckpointConfig("/chk", **settings),  # type: ignore[arg-type]
            self.log,
            first_id=first_id,
            now_ms=0,
        )

    def effects(self) -> list[Effect]:
        taken = list(self.coordinator.effects)
        self.coordinator.effects.clear()
        return taken

    def tick(self, now_ms: int) -> list[Effect]:
        self.coordinator.tick(now_ms)
        return self.effects()

    def ack(self, task: TaskId, checkpoint_id: int, now_ms: int = 0) -> Ack:
        uid = "read" if task.vertex == "a" else "sum"
        part = OperatorPart(uid, Micros(10 + task.subtask))
        timing = SnapshotTiming(1, 2, 3, 4)
        return self.coordinator.ack(SubtaskSnapshot(task, checkpoint_id, (part,), timing), now_ms)

    def ack_all(self, checkpoint_id: int, now_ms: int = 0) -> list[Effect]:
        for task in TASKS:
            assert self.ack(task, checkpoint_id, now_ms) is Ack.ACCEPTED
        return self.effects()

    def complete(self, checkpoint_id: int, now_ms: int = 0) -> list[Effect]:
        self.ack_all(checkpoint_id, now_ms)
        self.coordinator.manifest_written(checkpoint_id, now_ms)
        return self.effects()

    def request(
        self,
        trigger_id: str = "f" * 32,
        then: AfterBarrier = AfterBarrier.CONTINUE,
        kind: SnapshotKind = SnapshotKind.SAVEPOINT,
        now_ms: int = 0,
    ) -> list[Effect]:
        request = SnapshotRequest(trigger_id, kind, then, "/saved/")
        self.coordinator.request(request, now_ms)
        return self.effects()

    def status(self, trigger_id: str = "f" * 32) -> OperationStatus:
        operation = self.coordinator.operation(trigger_id)
        assert operation is not None
        return operation.status


def kinds(effects: list[Effect]) -> list[type[Effect]]:
    return [type(effect) for effect in effects]
