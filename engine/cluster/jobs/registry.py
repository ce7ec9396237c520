"""All jobs of a job manager: submitted, recovered, found by id.

    submit:   build the graph ─▶ check the snapshot ─▶ record the job ─▶ start it
    recover:  every job in the store, those that were not at their end start again; one whose plan
              cannot be read fails, and says so

Guarantee  nothing has started, and nothing is left behind, when a submission is refused. A job
           that was accepted is in the store, so a job manager that dies a moment later starts it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import RestoreReport, check_restore
from engine.checkpoint.restoring.inputs import Positions, positions_of
from engine.checkpoint.restoring.renames import renames_of
from engine.checkpoint.restoring.restore import check_files, load_manifest
from engine.checkpoint.restoring.starts import starts_of
from engine.clock import now_ms
from engine.cluster.jobs.beginnings import keep_beginnings
from engine.cluster.jobs.deployment import Surroundings
from engine.cluster.jobs.failures import raised
from engine.cluster.jobs.life import JobLife
from engine.cluster.jobs.master import JobMaster
from engine.cluster.jobs.operations import Operations, What
from engine.cluster.jobs.rescale import wanted_of
from engine.cluster.jobs.restart import RestartPolicy
from engine.cluster.jobs.restart_settings import strategy_of
from engine.cluster.programs.artifacts import Artifacts, Built, load_plan, settings_of
from engine.cluster.settings.job_settings import (
    CHECKPOINT_DIR,
    absolute,
    directory_of,
    snapshot_settings,
)
from engine.cluster.store.rows import JobRow, SnapshotRow
from engine.elements import SnapshotKind
from engine.errors import HeadwaterError, StorageError
from engine.graph.plan import Plan
from engine.graph.rescaling import Parallelism, parallelism_of, rescaled_plan
from engine.rest.errors import Conflict, job_not_found
from engine.rest.model.jobs import Failure
from engine.rest.model.requests import (
    ClaimMode,
    PreflightRequest,
    RescaleRequest,
    RunRequest,
)

log = logging.getLogger(__name__)

Build = Callable[[Path, Positions], Awaitable[Built]]
"""Puts the graph of a program into a folder, and asks its sources about stored positions."""


class Jobs:
    """The masters of all jobs."""

    def __init__(self, home: Path, around: Surroundings, artifacts: Artifacts) -> None:
        self.operations = Operations(around.store, self._cancel)
        self._home = home
        self._around = around
        self._artifacts = artifacts
        self._masters: dict[str, JobMaster] = {}
        self._submitting: set[str] = set()
        self.ended = asyncio.Event()
        """Set whenever a job has ended."""

    @property
    def masters(self) -> Collection[JobMaster]:
        """Every job, oldest first."""
        return self._masters.values()

    def find(self, job_id: str) -> JobMaster:
        """One job. Raises NotFound."""
        master = self._masters.get(job_id)
        if master is None:
            raise job_not_found(job_id)
        return master

    def forget(self, job_id: str) -> None:
        """Remember an ended job no longer."""
        del self._masters[job_id]

    def by_attempt(self) -> Mapping[str, JobMaster]:
        """Who runs which attempt."""
        masters = (master for master in self.masters if master.attempt is not None)
        return {master.attempt.id: master for master in masters if master.attempt is not None}

    def on_slots(self) -> None:
        """Slots may be free: jobs that wait for them take them, oldest first."""
        for master in list(self.masters):
            master.on_slots()

    def recover(self) -> None:
        """Take over the jobs of the job manager that was here before; none of its workers runs."""
        self.operations.close_left_over()
        found: list[tuple[JobMaster, Failure | None]] = []
        for row in self._around.store.jobs():
            try:
                master, reason = self._master(row, load_plan(row.folder)), None
            except HeadwaterError as error:
                log.error("job %s (%s) cannot be recovered: %s", row.name, row.job_id, error)
                master, reason = self._without_plan(row), raised(error, now_ms())
            self._masters[row.job_id] = master
            found.append((master, reason))
        for master, failure in found:
            if failure is None:
                master.recover()
            else:
                master.fail_at_once(failure)
            if master.life.status.terminal:
                self._on_end(master)

    async def end(self) -> None:
        """The job manager ends: no job is started again by it."""
        for master in self.masters:
            await master.end_work()

    async def sweep(self) -> None:
        """Nothing runs any more: remove what the workers of jobs had on disk."""
        for master in self.masters:
            if not master.life.status.terminal:
                await master.sweep_state()

    async def submit(self, request: RunRequest, build: Build | None = None) -> str:
        """Accept a job and start it. Raises as `EngineService.run`.

        `build`: when the program is not an artifact.
        """
        job_id = request.job_id or secrets.token_hex(16)
        if job_id in self._masters or job_id in self._submitting:
            msg = f"job id {job_id} is taken; use another, or none"
            raise Conflict(msg)
        self._submitting.add(job_id)
        folder = self._home / "jobs" / job_id
        try:
            positions = await positions_at(request)
            if build is None:
                built = await self._artifacts.build(request.program, folder, positions)
            else:
                built = await build(folder, positions)
            row = await self._row(job_id, request, built)
            claimed = row.restore_path if request.claim is ClaimMode.CLAIM else None
            if claimed is not None:
                self._check_claim(claimed)
            master = self._master(row, built.plan)
            self._around.store.add_job(row)
            if claimed is not None:
                self._around.store.claim(_claimed(row, claimed))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            self._submitting.discard(job_id)
        self._masters[job_id] = master
        master.start()
        return job_id

    def rescale(self, job_id: str, request: RescaleRequest) -> str:
        """Begin to change a job's parallelism. Raises as `EngineService.rescale`."""
        master, store = self.find(job_id), self._around.store
        known = request.trigger_id and store.operation(request.trigger_id)
        if known:
            return known.trigger_id
        wanted = wanted_of(request, master.plan)
        self._check_rescale(master, wanted)
        trigger_id, _ = self.operations.begin(What.RESCALE, job_id, request.trigger_id)
        if wanted == parallelism_of(master.plan):
            self.operations.finish(trigger_id)
            return trigger_id
        try:
            master.rescale(trigger_id, wanted)
        except StorageError as error:
            self.operations.finish(trigger_id, failure=str(error))
            raise
        return trigger_id

    def _check_rescale(self, master: JobMaster, wanted: Parallelism) -> None:
        job_id, status = master.row.job_id, master.life.status
        if status.terminal or master.rescaling.pending is not None:
            reason = f"the job is {status}" if status.terminal else "another one is under way"
            msg = f"rescale of job {job_id} is not possible: {reason}"
            raise Conflict(msg)
        needed = max(rescaled_plan(master.plan, wanted).vertices, key=lambda v: v.parallelism)
        found = sum(self._around.fleet.slots.free().values()) + master.slots_held
        if needed.parallelism > found:
            msg = (
                f"rescale of job {job_id} needs {needed.parallelism} slots: got {found}, free or "
                "its own; start task managers, or choose less"
            )
            raise Conflict(msg)

    def _check_claim(self, path: str) -> None:
        """Refuse to take a snapshot away from a job that would need it. Raises Conflict."""
        for master in self.masters:
            if master.life.status.terminal:
                continue
            job_id = master.row.job_id
            if path in {master.needed_snapshot, *self._around.store.snapshot_paths(job_id)}:
                msg = (
                    f"snapshot {path} cannot be claimed: job {job_id} runs and may need it; use "
                    "claimMode NO_CLAIM, or end that job first"
                )
                raise Conflict(msg)

    async def _row(self, job_id: str, request: RunRequest, built: Built) -> JobRow:
        path, next_id = request.savepoint_path, 1
        if path is not None:
            path = absolute(path)
            manifest = await read(path)
            compare(manifest, built, request).raise_if_refused()
            keep_beginnings(built.folder, built.inputs)
            next_id = manifest.checkpoint_id + 1
        life = JobLife.begin(now_ms())
        return JobRow(
            job_id,
            built.plan.name,
            life.status,
            life.entered_ms,
            now_ms(),
            str(built.folder),
            str(built.code),
            request.program.arguments,
            settings_of(request.program),
            path,
            next_id,
            built.python,
        )

    def _master(self, row: JobRow, plan: Plan) -> JobMaster:
        base = directory_of(row.settings, CHECKPOINT_DIR, self._home / "checkpoints")
        directory = f"{base.rstrip('/')}/{row.job_id}"
        return JobMaster(
            row,
            plan,
            snapshot_settings(directory, plan, row.settings),
            RestartPolicy(strategy_of(row.settings), Random(row.job_id)),  # noqa: S311  jitter
            self._around,
            self.operations.on_snapshot,
            self._on_end,
        )

    def _without_plan(self, row: JobRow) -> JobMaster:
        """A job that can only be looked at; without its settings, should they be what is wrong."""
        nothing = Plan(row.name, 1, None, (), ())
        try:
            return self._master(row, nothing)
        except HeadwaterError:
            return self._master(replace(row, settings={}), nothing)

    def _on_end(self, master: JobMaster) -> None:
        self.operations.on_end(master.row.job_id, master.life.status)
        self.ended.set()

    def _cancel(self, job_id: str) -> None:
        self.find(job_id).cancel()


def _claimed(row: JobRow, path: str) -> SnapshotRow:
    """The snapshot that a job starts from, as its own first checkpoint."""
    checkpoint_id = row.next_checkpoint_id - 1
    return SnapshotRow(row.job_id, checkpoint_id, SnapshotKind.CHECKPOINT, path, now_ms())


async def positions_at(request: RunRequest) -> Positions:
    """Where the sources of a job go on, by its names for them. Raises RestoreError."""
    if request.savepoint_path is None:
        return {}
    manifest = await asyncio.to_thread(load_manifest, absolute(request.savepoint_path))
    return positions_in(manifest, request)


def positions_in(manifest: Manifest, request: RunRequest | PreflightRequest) -> Positions:
    """The same, of a snapshot that was read."""
    settings = request.program.settings
    return positions_of(renames_of(settings).applied(manifest), starts_of(settings))


async def read(path: str) -> Manifest:
    """Read a snapshot whose files are there. Raises RestoreError, StorageError."""
    manifest = await asyncio.to_thread(load_manifest, path)
    await asyncio.to_thread(check_files, manifest, path)
    return manifest


def compare(
    manifest: Manifest, built: Built, request: RunRequest | PreflightRequest
) -> RestoreReport:
    """What a job would restore of a snapshot."""
    return check_restore(
        manifest,
        built.plan,
        request.allow_non_restored,
        renames_of(request.program.settings),
        built.inputs,
        request.accept_missing_input,
    )
