"""A whole engine in memory, for tests of everything that speaks its HTTP interface.

    service = FakeService()
    client = AsyncEngineClient(URL, transport=httpx.ASGITransport(create_app(service)))

Commands change what the reading methods say, as in the real thing, and nothing depends on time: an
operation is IN_PROGRESS at its first poll and done at the second. A target folder that contains
"unwritable" makes a savepoint fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.checkpoint.coordination.stats import (
    CheckpointHistory,
    CheckpointLog,
    CheckpointStats,
    RestoredCheckpoint,
)
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import check_restore
from engine.elements import AfterBarrier, SnapshotKind
from engine.errors import Domain
from engine.graph.plan import Plan
from engine.rest.errors import (
    Conflict,
    artifact_not_found,
    job_not_found,
    operation_not_found,
    task_manager_not_found,
)
from engine.rest.model.checkpoints import CheckpointSettings
from engine.rest.model.cluster import Artifact, ClusterInfo, Slot
from engine.rest.model.jobs import Failure, FailureHistory, JobDetails, JobStatus, TaskStatus
from engine.rest.model.operations import JobProgress, Preflight, SourceProgress, TriggerStatus
from engine.rest.model.requests import (
    PreflightRequest,
    Program,
    RunRequest,
    SavepointRequest,
    StopRequest,
)
from engine.rest.model.resources import LocalResources, LocalTaskManager
from engine.testing import fake_values as values
from engine.testing.fake_running import START_MS, FakeRunning
from engine.testing.fake_snapshots import FakeSnapshots
from engine.version import VERSION


@dataclass(slots=True)
class _Operation:
    """Something that was triggered; it is done when it is polled again."""

    result: TriggerStatus
    polled: bool = False
    ends: JobStatus | None = None
    """The state that its job reaches with it."""


class FakeService(FakeSnapshots, FakeRunning):
    """Implements `EngineService`."""

    def __init__(self) -> None:
        FakeSnapshots.__init__(self)
        FakeRunning.__init__(self)
        self.uploaded: dict[str, Artifact] = {}
        self.logs: dict[str, CheckpointLog] = {}
        self.histories: dict[str, FailureHistory] = {}
        self.requests: list[RunRequest] = []
        """Every accepted run, for tests that look at what arrived."""
        self._operations: dict[str, _Operation] = {}
        self._local = {"tm-1", "tm-2"}
        self._leave_lost = False
        self._last_id = 0
        self._last_checkpoint = 0

    # Reading.

    async def cluster(self) -> ClusterInfo:
        """Two task managers of four slots."""
        slots: dict[str, list[Slot]] = {manager: [] for manager in values.MANAGERS}
        for job in self.known.values():
            for index in range(0 if job.status.terminal else job.parallelism):
                holder = values.MANAGERS[index % len(values.MANAGERS)]
                slots[holder].append(values.slot(job, index))
        return ClusterInfo(
            version=VERSION,
            commit="unknown",
            task_managers=tuple(
                values.task_manager(manager, tuple(held), START_MS)
                for manager, held in slots.items()
            ),
            metrics={"Status.Process.CPU.Load": 0.02},
        )

    async def jobs(self) -> Sequence[JobDetails]:
        """Every job."""
        return tuple(self.known.values())

    async def job(self, job_id: str) -> JobDetails:
        """One job."""
        if job_id not in self.known:
            raise job_not_found(job_id)
        return self.known[job_id]

    async def failures(self, job_id: str) -> FailureHistory:
        """What `fail` recorded."""
        return self.histories[(await self.job(job_id)).id]

    async def checkpoints(self, job_id: str) -> CheckpointHistory:
        """Its checkpoints and savepoints."""
        return self.logs[(await self.job(job_id)).id].history()

    async def checkpoint_settings(self, job_id: str) -> CheckpointSettings:
        """One a second."""
        await self.job(job_id)
        return CheckpointSettings(1_000, 600_000, 0, 1, 3, "memory", "file:///data/checkpoints", 3)

    async def progress(self, job_id: str) -> JobProgress:
        """Somewhere in March."""
        await self.job(job_id)
        source = SourceProgress(
            uid="flights",
            name="Source: flights",
            vertex_id=values.SOURCE_ID,
            watermark=values.EVENT_TIME,
            pending_rows=12,
        )
        return JobProgress(START_MS, values.EVENT_TIME, (source,))

    # Artifacts.

    async def artifacts(self) -> Sequence[Artifact]:
        """Uploaded job files."""
        return tuple(self.uploaded.values())

    async def upload_artifact(self, filename: str, content: Path) -> Artifact:
        """Remember the file's name and size."""
        size = content.stat().st_size
        artifact = Artifact(f"{self._next_id()}_{filename}", filename, START_MS, size)
        self.uploaded[artifact.id] = artifact
        return artifact

    async def delete_artifact(self, artifact_id: str) -> None:
        """Forget an artifact."""
        if self.uploaded.pop(artifact_id, None) is None:
            raise artifact_not_found(artifact_id)

    async def plan(self, program: Program) -> Plan:
        """The same graph for every program, under the name it asks for."""
        artifact = self.uploaded.get(program.artifact_id)
        if artifact is None:
            raise artifact_not_found(program.artifact_id)
        name = program.settings.get("pipeline.name", artifact.filename.removesuffix(".py"))
        return values.plan(name, program.parallelism or 1)

    # Commands.

    async def run(self, request: RunRequest) -> str:
        """Start a job, which runs at once and has one checkpoint."""
        plan = await self.plan(request.program)
        job_id = request.job_id or self._next_id()
        if job_id in self.known:
            msg = f"job {job_id} exists already; choose another id"
            raise Conflict(msg)
        restored = None
        if request.savepoint_path is not None:
            restored = await self.savepoint(request.savepoint_path)
            check_restore(restored, plan, request.allow_non_restored).raise_if_refused()
        self._start(job_id, plan, request, restored)
        return job_id

    async def cancel(self, job_id: str) -> None:
        """Cancel at once."""
        job = await self.job(job_id)
        if job.status.terminal and job.status is not JobStatus.CANCELED:
            msg = f"job {job_id} cannot be cancelled: it is {job.status} already"
            raise Conflict(msg)
        self._end(job_id, JobStatus.CANCELED)

    async def trigger_savepoint(self, job_id: str, request: SavepointRequest) -> str:
        """Take a savepoint."""
        ends = JobStatus.CANCELED if request.cancel else None
        return await self._savepoint(job_id, request, AfterBarrier.CONTINUE, ends)

    async def stop(self, job_id: str, request: StopRequest) -> str:
        """Take the last savepoint."""
        then = AfterBarrier.DRAIN if request.drain else AfterBarrier.STOP
        return await self._savepoint(job_id, request, then, JobStatus.FINISHED)

    async def savepoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a savepoint stands."""
        await self.job(job_id)
        return self._poll("savepoint", trigger_id, job_id)

    async def trigger_checkpoint(self, job_id: str, trigger_id: str | None, *, full: bool) -> str:
        """Take a checkpoint."""
        job = await self.running(job_id)
        stats = self._checkpoint(job)
        trigger = trigger_id or self._next_id()
        self._operations[trigger] = _Operation(TriggerStatus(True, checkpoint_id=stats.id))
        return trigger

    async def checkpoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a manual checkpoint stands."""
        await self.job(job_id)
        return self._poll("checkpoint", trigger_id, job_id)

    async def dispose_savepoint(self, path: str) -> str:
        """Delete a savepoint; an unknown one fails when polled."""
        found = self.manifests.pop(path, None)
        failure = None if found else f"snapshot is not there: no folder {path}; check the path"
        trigger = self._next_id()
        self._operations[trigger] = _Operation(TriggerStatus(True, failure=failure))
        return trigger

    async def disposal_status(self, trigger_id: str) -> TriggerStatus:
        """Where a disposal stands."""
        return self._poll("savepoint disposal", trigger_id)

    # Task managers of this machine.

    async def local_task_managers(self) -> LocalResources:
        """Those that were started and not stopped."""
        kept = tuple(LocalTaskManager(name, 4_001) for name in sorted(self._local))
        return LocalResources(not self._leave_lost, kept)

    async def start_task_manager(self, name: str | None) -> str:
        """Start one."""
        started = name or f"tm-{len(self._local) + 1}"
        self._local.add(started)
        return started

    async def stop_task_manager(self, name: str) -> None:
        """Stop one."""
        if name not in self._local:
            raise task_manager_not_found(name)
        self._local.remove(name)

    async def leave_lost_task_managers(self, wish: bool) -> None:
        """Remember a wish."""
        self._leave_lost = wish

    # Snapshots.

    async def preflight(self, request: PreflightRequest) -> Preflight:
        """The real check on the manifest and the plan."""
        plan = await self.plan(request.program)
        manifest = await self.savepoint(request.savepoint_path)
        report = check_restore(manifest, plan, request.allow_non_restored)
        return Preflight(plan, manifest, report)

    # What tests do to it.

    def fail(self, job_id: str, message: str) -> None:
        """Let a job fail for good."""
        at_ms = START_MS + 60_000
        cause = Failure(
            name="FunctionError",
            message=message,
            at_ms=at_ms,
            domain=Domain.USER,
            traceback='  File "job.py", line 7, in parse',
            task="by day → files (1/1) - execution #0",
            endpoint="localhost",
            task_manager_id=values.MANAGERS[0],
        )
        self.histories[job_id] = FailureHistory((cause,))
        self._end(job_id, JobStatus.FAILED)
        self.known[job_id] = replace(self.known[job_id], failure=cause)

    def _start(
        self, job_id: str, plan: Plan, request: RunRequest, restored: Manifest | None
    ) -> None:
        parallelism = plan.vertices[0].parallelism
        job = JobDetails(
            id=job_id,
            name=plan.name,
            status=JobStatus.RUNNING,
            start_ms=START_MS,
            end_ms=-1,
            timestamps={
                JobStatus.INITIALIZING: START_MS,
                JobStatus.CREATED: START_MS + 5,
                JobStatus.RUNNING: START_MS + 700,
            },
            parallelism=parallelism,
            max_parallelism=plan.max_parallelism,
            plan=plan,
            vertices=tuple(
                values.vertex(vertex, TaskStatus.RUNNING, START_MS + 10, -1)
                for vertex in plan.vertices
            ),
            restart_strategy="exponential delay, 100 ms to 10 s",
            settings=request.program.settings,
            arguments=request.program.arguments,
            metrics={"numRestarts": 0, "uptime": 54_433, "lastCheckpointDuration": 75},
        )
        self.requests.append(request)
        self.known[job_id] = job
        self.histories[job_id] = FailureHistory()
        log = self.logs[job_id] = CheckpointLog()
        if restored is not None:
            savepoint = restored.kind is SnapshotKind.SAVEPOINT
            log.restored(
                RestoredCheckpoint(
                    restored.checkpoint_id, START_MS + 20, savepoint, request.savepoint_path
                )
            )
        self._checkpoint(job)

    def _end(self, job_id: str, status: JobStatus) -> None:
        job = self.known[job_id]
        if job.status.terminal:
            return
        end_ms = START_MS + 60_000
        ended = TaskStatus(status.value)
        self.known[job_id] = replace(
            job,
            status=status,
            end_ms=end_ms,
            timestamps={**job.timestamps, status: end_ms},
            vertices=tuple(
                values.vertex(vertex, ended, START_MS + 10, end_ms) for vertex in job.plan.vertices
            ),
        )

    def _checkpoint(
        self,
        job: JobDetails,
        kind: SnapshotKind = SnapshotKind.CHECKPOINT,
        then: AfterBarrier = AfterBarrier.CONTINUE,
        path: str = "",
    ) -> CheckpointStats:
        self._last_checkpoint += 1
        at_ms = START_MS + 1_000 * self._last_checkpoint
        stats = values.checkpoint(self._last_checkpoint, job.plan, at_ms, kind, then, path)
        self.logs[job.id].put(stats)
        return stats

    async def _savepoint(
        self,
        job_id: str,
        request: SavepointRequest | StopRequest,
        then: AfterBarrier,
        ends: JobStatus | None,
    ) -> str:
        trigger = request.trigger_id or self._next_id()
        if trigger in self._operations:
            return trigger
        job = await self.running(job_id)
        target = (request.target or "file:///data/savepoints").rstrip("/")
        path = f"{target}/savepoint-{job_id[:6]}-{trigger[:12]}"
        if "unwritable" in target:
            failure = f"savepoint cannot be written: {target} is read-only; choose another folder"
            self._operations[trigger] = _Operation(TriggerStatus(True, failure=failure))
            return trigger
        stats = self._checkpoint(job, SnapshotKind.SAVEPOINT, then, path)
        self.manifests[path] = values.manifest(job_id, job.name, stats)
        self._operations[trigger] = _Operation(TriggerStatus(True, location=path), ends=ends)
        return trigger

    def _poll(self, kind: str, trigger_id: str, job_id: str | None = None) -> TriggerStatus:
        operation = self._operations.get(trigger_id)
        if operation is None:
            raise operation_not_found(kind, trigger_id)
        if not operation.polled:
            operation.polled = True
            return TriggerStatus(done=False)
        if job_id is not None and operation.ends is not None:
            self._end(job_id, operation.ends)
        return operation.result

    def _next_id(self) -> str:
        self._last_id += 1
        return f"{self._last_id:032x}"
