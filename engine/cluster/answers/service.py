"""The job manager as REST sees it: everything that `rest.service.EngineService` asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

import psutil

from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.checkpoint.coordination.stats import CheckpointHistory
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.inspection.questions import StateQuestion, StateRows
from engine.checkpoint.restoring.restore import load_manifest
from engine.clock import now_ms
from engine.cluster.answers import views
from engine.cluster.answers.disposal import Disposals
from engine.cluster.answers.influx_reporter import InfluxReporter
from engine.cluster.answers.inspections import Inspections
from engine.cluster.answers.job_places import places_of
from engine.cluster.answers.state_queries import StateQueries
from engine.cluster.jobs.failure_log import SHOWN
from engine.cluster.jobs.master import JobMaster
from engine.cluster.jobs.operations import What
from engine.cluster.jobs.read_limits import checked_limit
from engine.cluster.jobs.registry import Jobs, compare, positions_in, read
from engine.cluster.machines.fleet import Fleet
from engine.cluster.machines.resources import LocalTaskManagers
from engine.cluster.programs.artifacts import Artifacts
from engine.cluster.settings.job_settings import SAVEPOINT_DIR, absolute, directory_of
from engine.cluster.store.store import Store
from engine.elements import AfterBarrier, SnapshotKind
from engine.graph.plan import Plan
from engine.rest.errors import Conflict, task_manager_not_found
from engine.rest.model.checkpoints import CheckpointSettings
from engine.rest.model.cluster import Artifact, ClusterInfo
from engine.rest.model.jobs import FailureHistory, JobDetails, JobStatus
from engine.rest.model.operations import JobProgress, Preflight, TriggerStatus
from engine.rest.model.requests import (
    PreflightRequest,
    Program,
    RescaleRequest,
    RunRequest,
    SavepointRequest,
    StopRequest,
)
from engine.rest.model.resources import LocalResources
from engine.rest.model.snapshots import InspectionStatus
from engine.rest.model.sources import SourceLimit
from engine.rest.model.states import StateQuery, StateValue
from engine.rest.model.statistics import StreamingStatistics
from engine.version import VERSION


class JobManagerService:
    """Implements `EngineService` over real processes."""

    def __init__(
        self,
        savepoints: Path,
        store: Store,
        fleet: Fleet,
        artifacts: Artifacts,
        jobs: Jobs,
        resources: LocalTaskManagers,
        snapshots: Sequence[str] = (),
        reporter: InfluxReporter | None = None,
    ) -> None:
        """`savepoints`: the folder of those that are asked for without another.

        `snapshots`: other folders in which clients may look for some.
        """
        self._savepoints = savepoints
        self._store = store
        self._fleet = fleet
        self._artifacts = artifacts
        self._jobs = jobs
        self._resources = resources
        self._reporter = reporter
        self._ended: WeakKeyDictionary[JobMaster, JobDetails] = WeakKeyDictionary()
        """Many more than those that run, and listed as often."""
        self._itself = psutil.Process()
        self._places = places_of(jobs, store, savepoints, snapshots)
        self._disposals = Disposals(jobs, self._places.place)
        self._inspections = Inspections(self._places)
        self._queries = StateQueries(jobs.find)

    # Reading.

    async def cluster(self) -> ClusterInfo:
        """Version and task managers."""
        attempts = self._jobs.by_attempt()
        reported = {} if self._reporter is None else self._reporter.figures()
        states = sorted(self._fleet.task_managers.items())
        return ClusterInfo(
            version=VERSION,
            commit="unknown",
            task_managers=tuple(
                views.task_manager(state, self._fleet, attempts) for _, state in states
            ),
            metrics={
                "Status.Process.CPU.Load": self._itself.cpu_percent() / 100,
                "Status.Process.Memory.Resident": self._itself.memory_info().rss,
                **reported,
            },
        )

    async def jobs(self) -> Sequence[JobDetails]:
        """Every job, oldest first."""
        return [self._details(master) for master in self._jobs.masters]

    async def job(self, job_id: str) -> JobDetails:
        """One job."""
        return self._details(self._jobs.find(job_id))

    def _details(self, master: JobMaster) -> JobDetails:
        """What is known of a job; of one that has ended it does not change any more."""
        if not master.life.status.terminal:
            return views.job_details(master, self._fleet)
        if master not in self._ended:
            self._ended[master] = views.job_details(master, self._fleet)
        return self._ended[master]

    async def failures(self, job_id: str) -> FailureHistory:
        """Why its attempts failed, newest first."""
        entries = tuple(self._jobs.find(job_id).failures.newest_first)
        return FailureHistory(entries, truncated=len(entries) == SHOWN)

    async def checkpoints(self, job_id: str) -> CheckpointHistory:
        """Its checkpoints and savepoints."""
        return self._jobs.find(job_id).snapshots.log.history()

    async def checkpoint_settings(self, job_id: str) -> CheckpointSettings:
        """How it takes checkpoints."""
        master = self._jobs.find(job_id)
        settings = master.snapshots.settings
        return CheckpointSettings(
            interval_ms=settings.config.interval_ms or 0,
            timeout_ms=settings.config.timeout_ms,
            min_pause_ms=settings.config.min_pause_ms,
            max_concurrent=settings.config.concurrent,
            tolerable_failures=settings.config.tolerable_failures,
            state_backend=master.plan.state_backend,
            storage=settings.config.directory,
            retained=settings.retained,
        )

    async def progress(self, job_id: str) -> JobProgress:
        """How far it is in event time."""
        return views.job_progress(self._jobs.find(job_id))

    async def statistics(self, job_id: str, window_s: int, step_s: int) -> StreamingStatistics:
        """What its source batches came to."""
        return self._jobs.find(job_id).statistics.statistics(now_ms() // 1000, window_s, step_s)

    # Artifacts.

    async def artifacts(self) -> Sequence[Artifact]:
        """Uploaded job files, newest first."""
        return self._store.artifacts()

    async def upload_artifact(self, filename: str, content: Path) -> Artifact:
        """Keep a copy of a file."""
        return await self._artifacts.upload(filename, content, now_ms())

    async def delete_artifact(self, artifact_id: str) -> None:
        """Forget an artifact."""
        self._artifacts.delete(artifact_id)

    async def plan(self, program: Program) -> Plan:
        """Build a program's graph and return its plan."""
        return await self._artifacts.plan(program)

    # Commands.

    async def run(self, request: RunRequest) -> str:
        """Start a job and return its id as soon as it is accepted."""
        if request.savepoint_path is not None:
            place = self._places.place(request.savepoint_path)
            request = replace(request, savepoint_path=place.url)
        return await self._jobs.submit(request)

    async def cancel(self, job_id: str) -> None:
        """Begin to cancel."""
        master = self._jobs.find(job_id)
        if master.life.status in (JobStatus.FINISHED, JobStatus.FAILED):
            msg = f"job {job_id} cannot be cancelled: it is {master.life.status} already"
            raise Conflict(msg)
        master.cancel()

    async def trigger_savepoint(self, job_id: str, request: SavepointRequest) -> str:
        """Begin a savepoint and return its trigger id."""
        what = What.CANCEL if request.cancel else What.SAVEPOINT
        return self._request(job_id, what, self._savepoint(job_id, request))

    async def stop(self, job_id: str, request: StopRequest) -> str:
        """Begin to stop with a savepoint."""
        then = AfterBarrier.DRAIN if request.drain else AfterBarrier.STOP
        return self._request(job_id, What.STOP, self._savepoint(job_id, request, then))

    async def savepoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a savepoint or stop stands."""
        self._jobs.find(job_id)
        return self._jobs.operations.status(trigger_id, "savepoint", job_id)

    async def trigger_checkpoint(self, job_id: str, trigger_id: str | None, *, full: bool) -> str:
        """Begin a checkpoint outside the interval and return its trigger id."""
        request = SnapshotRequest(trigger_id or "", SnapshotKind.CHECKPOINT, full=full)
        return self._request(job_id, What.CHECKPOINT, request)

    async def checkpoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a manual checkpoint stands."""
        self._jobs.find(job_id)
        return self._jobs.operations.status(trigger_id, "checkpoint", job_id)

    def _request(self, job_id: str, what: What, request: SnapshotRequest) -> str:
        master = self._jobs.find(job_id)
        known = self._store.operation(request.trigger_id) is not None
        if master.life.status.terminal and not known:
            msg = f"{what} of job {job_id} is not possible: the job is {master.life.status}"
            raise Conflict(msg)
        trigger_id, new = self._jobs.operations.begin(what, job_id, request.trigger_id or None)
        if new:
            master.request(replace(request, trigger_id=trigger_id))
        return trigger_id

    def _savepoint(
        self,
        job_id: str,
        request: SavepointRequest | StopRequest,
        then: AfterBarrier = AfterBarrier.CONTINUE,
    ) -> SnapshotRequest:
        directory = self._directory(job_id, request.target)
        return SnapshotRequest(request.trigger_id or "", SnapshotKind.SAVEPOINT, then, directory)

    def _directory(self, job_id: str, target: str | None) -> str:
        if target is not None:
            return absolute(target)
        settings = self._jobs.find(job_id).row.settings
        return directory_of(settings, SAVEPOINT_DIR, self._savepoints)

    # Task managers of this machine.

    async def local_task_managers(self) -> LocalResources:
        """Those that this process starts."""
        return self._resources.look()

    async def start_task_manager(self, name: str | None) -> str:
        """Start one more, or a lost one again."""
        return self._resources.want(name)

    async def stop_task_manager(self, name: str) -> None:
        """End one for good."""
        known = self._fleet.dismiss(name, "it was told to stop")
        if not await self._resources.dismiss(name) and not known:
            raise task_manager_not_found(name)

    async def leave_lost_task_managers(self, wish: bool) -> None:
        """Whether those that are lost stay so."""
        self._resources.leave_lost(wish)

    async def rescale(self, job_id: str, request: RescaleRequest) -> str:
        """Begin to change the parallelism and return a trigger id."""
        return self._jobs.rescale(job_id, request)

    async def rescale_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a rescale stands."""
        self._jobs.find(job_id)
        return self._jobs.operations.status(trigger_id, "rescale", job_id)

    async def read_limits(self, job_id: str) -> Sequence[SourceLimit]:
        """How fast each source may read."""
        return self._jobs.find(job_id).read_limits.limits()

    async def limit_reading(
        self,
        job_id: str,
        source: str | None,
        rows_per_second: float | None,
        times_real_time: float | None = None,
    ) -> Sequence[SourceLimit]:
        """Change how fast a source, or each, may read."""
        master = self._jobs.find(job_id)
        if master.life.status.terminal:
            msg = f"read limit of job {job_id} cannot be changed: the job is {master.life.status}"
            raise Conflict(msg)
        master.limit_reading(source, checked_limit(rows_per_second, times_real_time))
        return master.read_limits.limits()

    # Snapshots.

    async def savepoint(self, path: str) -> Manifest:
        """Read the manifest of a snapshot."""
        place = self._places.place(path)
        return await asyncio.to_thread(load_manifest, place.url, place.open)

    async def preflight(self, request: PreflightRequest) -> Preflight:
        """Say what a start from a snapshot would restore.

        The snapshot is read first: a checkpoint may be replaced while the graph is built.
        """
        manifest = await read(self._places.place(request.savepoint_path).url)
        positions = positions_in(manifest, request)
        built = await self._artifacts.look(request.program, positions)
        return Preflight(built.plan, manifest, compare(manifest, built, request), built.inputs)

    async def dispose_savepoint(self, path: str) -> str:
        """Begin to delete a savepoint's folder and return a trigger id."""
        return self._disposals.start(path)

    async def disposal_status(self, trigger_id: str) -> TriggerStatus:
        """Where a disposal stands."""
        return self._jobs.operations.status(trigger_id, "disposal", None)

    async def verify_savepoint(self, path: str, trigger_id: str | None) -> str:
        """Begin to read every byte of a snapshot and return a trigger id."""
        return self._inspections.start("verification", [path], trigger_id)

    async def verification(self, trigger_id: str) -> InspectionStatus:
        """Where a verification stands."""
        return self._inspections.status("verification", trigger_id)

    async def compare_savepoints(
        self, left: str, right: str, examples: int, trigger_id: str | None
    ) -> str:
        """Begin to compare two snapshots and return a trigger id."""
        return self._inspections.start("comparison", [left, right], trigger_id, examples=examples)

    async def comparison(self, trigger_id: str) -> InspectionStatus:
        """Where a comparison stands."""
        return self._inspections.status("comparison", trigger_id)

    async def read_state(self, path: str, question: StateQuestion) -> StateRows:
        """Rows of one state of a snapshot."""
        return await self._inspections.read(path, question)

    async def live_state(self, job_id: str, query: StateQuery) -> StateValue:
        """What one key has in a state of a running job."""
        return await self._queries.get(job_id, query)
