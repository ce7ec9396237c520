"""An engine in memory that runs the seeded jobs; its figures move when it is told to tick."""

from __future__ import annotations

from dataclasses import replace

import seeded_jobs as seeded
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.stats import CheckpointLog, CheckpointStats, CheckpointStatus
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.rest.model.jobs import FailureHistory, JobDetails, JobStatus
from engine.rest.model.operations import JobProgress, SourceProgress, TriggerStatus
from engine.rest.model.requests import SavepointRequest
from engine.testing import fake_values as values
from engine.testing.fake_service import FakeService
from seeded_jobs import START_MS, Op

EVERY_S = 10
HISTORY = 48
FAILED, SLOW_FROM = 20, 36
"""One of the old ones failed, and the newest are slow."""
SNAPSHOT_TICKS = 2
UP_MS = 55 * 3_600_000


class SeededEngine(FakeService):
    """Runs three jobs from the start; ids are 32 times their number."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: dict[str, tuple[Op, ...]] = {}
        self.ticks = 0
        self.is_broken = False
        """Whether savepoints fail."""
        self._last_checkpoint = 18_300 + HISTORY
        self._under_way: dict[str, tuple[int, CheckpointStats]] = {}
        """By job: when its snapshot began, and what it will be after `SNAPSHOT_TICKS`."""
        self.add("1" * 32, "orders", seeded.ORDERS, seeded.ORDERS_EDGES)
        self.add("2" * 32, "wide", *seeded.wide())
        self.add("3" * 32, "many", seeded.MANY_OPS, seeded.MANY_EDGES)

    def tick(self, ticks: int) -> None:
        """Let the figures be those of that second."""
        self.ticks = ticks
        for job_id, ops in self.ops.items():
            moved = seeded.vertices(ops, ticks)
            self.known[job_id] = replace(self.known[job_id], vertices=moved)
        for job_id, (began, whole) in list(self._under_way.items()):
            if ticks >= began + SNAPSHOT_TICKS:
                self.logs[job_id].put(whole)
                del self._under_way[job_id]

    async def trigger_savepoint(self, job_id: str, request: SavepointRequest) -> str:
        """Take one, or fail to."""
        if self.is_broken:
            request = replace(request, target="/unwritable")
        return await super().trigger_savepoint(job_id, request)

    async def savepoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where it stands."""
        status = await super().savepoint_status(job_id, trigger_id)
        return TriggerStatus(done=False) if job_id in self._under_way else status

    def _checkpoint(
        self,
        job: JobDetails,
        kind: SnapshotKind = SnapshotKind.CHECKPOINT,
        then: AfterBarrier = AfterBarrier.CONTINUE,
        path: str = "",
    ) -> CheckpointStats:
        """Begin one; the first half of the operators have written their parts at once."""
        self._last_checkpoint += 1
        at_ms = START_MS + 1_000 * self.ticks
        whole = values.checkpoint(self._last_checkpoint, job.plan, at_ms, kind, then, path)
        half = len(whole.vertices) // 2
        silent = tuple(replace(one, subtasks=()) for one in whole.vertices[half:])
        self.logs[job.id].put(
            replace(
                whole,
                status=CheckpointStatus.IN_PROGRESS,
                vertices=(*whole.vertices[:half], *silent),
                external_path=None,
            )
        )
        self._under_way[job.id] = self.ticks, whole
        return whole

    async def progress(self, job_id: str) -> JobProgress:
        """Sources have read up to now; the watermark is as far behind as the slowest source."""
        if job_id not in self.ops:  # one that a test deployed
            return await super().progress(job_id)
        behind = max(op.delay_ms for op in self.ops[job_id] if op.kind is seeded.SOURCE)
        newest_ms = START_MS + 1_000 * self.ticks
        watermark = Micros(int((newest_ms - behind) * 1_000))
        source = SourceProgress(
            uid="all",
            name="all",
            vertex_id=self.ops[job_id][0].id,
            watermark=watermark,
            newest=Micros(newest_ms * 1_000),
            pending_rows=4_100_000,
        )
        return JobProgress(START_MS, watermark, (source,))

    def add(
        self, job_id: str, name: str, ops: tuple[Op, ...], edges: tuple[tuple[str, str, str], ...]
    ) -> None:
        """Run one more."""
        plan = seeded.plan(name, ops, edges)
        self.ops[job_id] = ops
        self.known[job_id] = JobDetails(
            id=job_id,
            name=name,
            status=JobStatus.RUNNING,
            start_ms=START_MS - UP_MS,
            end_ms=-1,
            timestamps={JobStatus.RUNNING: START_MS - UP_MS},
            parallelism=plan.slots,
            max_parallelism=plan.max_parallelism,
            plan=plan,
            vertices=seeded.vertices(ops, 0),
            metrics={"numRestarts": 0, "uptime": UP_MS},
        )
        self.histories[job_id] = FailureHistory()
        self.logs[job_id] = _checkpoints(ops, HISTORY if name == "orders" else 2)


def _checkpoints(ops: tuple[Op, ...], many: int) -> CheckpointLog:
    log = CheckpointLog()
    for number in range(HISTORY + 1 - many, HISTORY + 1):
        log.put(_checkpoint(ops, number))
    return log


def _checkpoint(ops: tuple[Op, ...], number: int) -> CheckpointStats:
    at_ms = START_MS - EVERY_S * 1_000 * (HISTORY + 1 - number)
    empty = CheckpointStats(
        id=18_300 + number,
        kind=SnapshotKind.SAVEPOINT if number == HISTORY // 2 else SnapshotKind.CHECKPOINT,
        status=CheckpointStatus.COMPLETED,
        triggered_ms=at_ms,
        duration_ms=0,
        vertices=(),
        external_path=f"file:///data/checkpoints/chk-{18_300 + number}",
    )
    whole = seeded.with_parts(ops, empty, slow=3 if number >= SLOW_FROM else 1)
    if number != FAILED:
        return whole
    first, *rest = whole.vertices
    torn = replace(first, subtasks=first.subtasks[: first.parallelism // 2])
    return replace(
        whole,
        status=CheckpointStatus.FAILED,
        vertices=(torn, *rest),
        external_path=None,
        duration_ms=60_000,
        failed_ms=at_ms + 60_000,
        reason=FailureReason.EXPIRED,
        failure=f"checkpoint {whole.id} expired: {FailureReason.EXPIRED.sentence}",
    )
