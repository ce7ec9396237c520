"""An engine in memory that runs the seeded jobs; its figures move when it is told to tick."""

from __future__ import annotations

from dataclasses import replace

import seeded_jobs as seeded
import seeded_replays
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.stats import CheckpointLog, CheckpointStats, CheckpointStatus
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import check_restore
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.graph.plan import Plan
from engine.rest.model.jobs import FailureHistory, JobDetails, JobStatus, TaskStatus
from engine.rest.model.operations import JobProgress, Preflight, SourceProgress, TriggerStatus
from engine.rest.model.requests import PreflightRequest, Program, RunRequest, SavepointRequest
from engine.testing import fake_values as values
from engine.testing.fake_service import FakeService
from seeded_jobs import START_MS, Op
from seeded_replays import Replays

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
        self.replays = Replays()
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
        self.replays.tick(self.now_ms)

    @property
    def now_ms(self) -> int:
        """What the clock shows."""
        return START_MS + 1_000 * self.ticks

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
        """Begin one; the first half of the operators have written their parts at once. Those of a
        job that was started here are complete at once.
        """
        self._last_checkpoint += 1
        at_ms = self.now_ms
        whole = values.checkpoint(self._last_checkpoint, job.plan, at_ms, kind, then, path)
        if job.id not in self.ops:
            self.logs[job.id].put(whole)
            return whole
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
        if job_id not in self.ops:  # one that was started here
            return self._progress_of(job_id, await super().progress(job_id))
        behind = max(op.delay_ms for op in self.ops[job_id] if op.kind is seeded.SOURCE)
        newest_ms = self.now_ms
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

    def _progress_of(self, job_id: str, like: JobProgress) -> JobProgress:
        """The job that can be replayed is where the clock is, and its replays somewhere behind."""
        if not self.known[job_id].name.startswith(seeded_replays.NAME):
            return like
        reached = Micros(int(1_000 * self.replays.reached_ms.get(job_id, self.now_ms)))
        source = replace(like.sources[0], watermark=reached, newest=reached, pending_rows=4_100)
        return replace(like, position=reached, sources=(source,))

    async def start_revenue(self) -> None:
        """Run the job that can be replayed; its savepoints can be read."""
        program = Program(f"0_{seeded_replays.NAME}.py", seeded_replays.PARALLELISM)
        plan = values.plan(seeded_replays.NAME, seeded_replays.PARALLELISM)
        self._start(seeded_replays.ID, plan, RunRequest(program, job_id=seeded_replays.ID), None)
        stats = values.checkpoint(1, plan, START_MS)
        for days in seeded_replays.SAVEPOINTS:
            found = seeded_replays.manifest(days, stats)
            self.manifests[seeded_replays.place(days)] = found

    def replan(self) -> None:
        """Let the job that can be replayed run with one more sink."""
        for job in list(self.known.values()):
            if job.name == seeded_replays.NAME and not job.status.terminal:
                plan = seeded_replays.with_one_more(job.plan)
                added = values.vertex(plan.vertices[-1], TaskStatus.RUNNING, START_MS, -1)
                vertices = (*job.vertices, added)
                self.known[job.id] = replace(job, plan=plan, vertices=vertices)

    async def job(self, job_id: str) -> JobDetails:
        """One job, with how often it was started again."""
        found = await super().job(job_id)
        restarts = self.replays.restarts.get(job_id)
        if restarts is None:
            return found
        return replace(found, metrics={**found.metrics, "numRestarts": restarts})

    async def preflight(self, request: PreflightRequest) -> Preflight:
        """The real check, with what the source says of its input."""
        plan = await self.plan(request.program)
        snapshot = await self.savepoint(request.savepoint_path)
        inputs, accepted = seeded_replays.inputs_of(snapshot), request.accept_missing_input
        allowed = request.allow_non_restored
        report = check_restore(snapshot, plan, allowed, inputs=inputs, accept_missing=accepted)
        return Preflight(plan, snapshot, report, inputs)

    def _start(
        self, job_id: str, plan: Plan, request: RunRequest, restored: Manifest | None
    ) -> None:
        """Start it; a replay begins where its savepoint was taken."""
        super()._start(job_id, plan, request, restored)
        if restored is not None and "@r-" in plan.name:
            self.replays.begin(job_id, restored)

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
