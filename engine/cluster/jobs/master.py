"""The master of one job: starts attempts, watches them, and decides what follows their end.

    start ─▶ slots ─▶ deployment ─▶ running ─▶ all finished ─▶ FINISHED
               ▲           │ a failure, a lost worker, too many failed checkpoints, cancel
               │           ▼
               │     kill every worker, wait until all are gone ─▶ FAILED | CANCELED
               └── delay ──┘

Guarantee  an attempt begins only when no process of the one before runs, from the newest snapshot
           that was recorded; so every row counts once.
Order      one event loop; methods return at once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.checkpoint.coordination.effects import Operation, SnapshotRequest
from engine.checkpoint.coordination.failure import FailureReason
from engine.clock import now_ms
from engine.cluster.background import Background, say_loudly
from engine.cluster.jobs.attempt import Attempt
from engine.cluster.jobs.deployment import Deployment, Surroundings
from engine.cluster.jobs.failure_log import FailureLog
from engine.cluster.jobs.life import JobLife
from engine.cluster.jobs.read_limits import READ_LIMIT, Limit, ReadLimits, setting_of
from engine.cluster.jobs.rescale import Rescaling
from engine.cluster.jobs.restart import GiveUp, Restart, RestartPolicy
from engine.cluster.jobs.source_history import JobStatistics
from engine.cluster.machines.scheduler import Shortage
from engine.cluster.machines.sweeping import sweep_state
from engine.cluster.snapshots.job_snapshots import JobSnapshots, SnapshotSettings
from engine.cluster.store.rows import JobRow
from engine.elements import SnapshotKind
from engine.errors import Domain
from engine.graph.plan import Plan
from engine.graph.rescaling import Parallelism
from engine.graph.tasks import tasks_of
from engine.rest.model.jobs import Failure, JobStatus, TaskStatus
from engine.runtime import control
from engine.runtime.worker_exchange import data_socket

log = logging.getLogger(__name__)


class JobMaster:
    """Runs one job from its submission to its end."""

    def __init__(
        self,
        row: JobRow,
        plan: Plan,
        settings: SnapshotSettings,
        policy: RestartPolicy,
        around: Surroundings,
        on_operation: Callable[[Operation], None],
        on_end: Callable[[JobMaster], None],
    ) -> None:
        self.row = row
        self.rescaling = Rescaling(plan, self, on_operation, row.rescales)
        self.life = JobLife(row.status, dict(row.entered_ms))
        self.snapshots = JobSnapshots(
            row.job_id, self.plan, settings, around.store, self, row.next_checkpoint_id
        )
        self.statistics = JobStatistics(plan)
        self.read_limits = ReadLimits(plan, row.settings)
        self.attempt: Attempt | None = None
        """The present one, or the last one."""
        self.waiting_for: str | None = None
        self.failures = FailureLog(row.job_id, policy, around.store)
        self.restarts = row.restarts
        self._around = around
        self._on_operation = on_operation
        self._on_end = on_end
        self._deployment: Deployment | None = None
        self._wants_slots = False
        self._delay_ms = 0
        self._work = Background(self._on_bug)

    def __repr__(self) -> str:
        return f"JobMaster({self.row.name!r}, {self.life.status}, {self.attempt})"

    @property
    def plan(self) -> Plan:
        """At the present parallelism."""
        return self.rescaling.plan

    @property
    def failure(self) -> Failure | None:
        """Why it FAILED."""
        return self.failures.newest if self.life.status is JobStatus.FAILED else None

    @property
    def needed_snapshot(self) -> str | None:
        """The folder from which it would start again; None once it has ended."""
        if self.life.status.terminal:
            return None
        point = self._around.store.recovery_point(self.row.job_id)
        return self.row.restore_path if point is None else point.path

    # Commands.

    def start(self) -> None:
        """Deploy the job as soon as there are slots."""
        self.rescaling.on_start()
        self.snapshots.plan = self.plan
        self.attempt, self._wants_slots = None, True
        self.on_slots()

    def recover(self) -> None:
        """Go on with a job that an earlier job manager left behind; none of its workers runs."""
        self.failures.recall()
        self._work.start(self.snapshots.sweep())
        self._work.start(self.sweep_state())
        match self.life.status:
            case JobStatus.CANCELLING:
                self._enter(JobStatus.CANCELED)
            case JobStatus.FAILING:
                self._enter(JobStatus.FAILED)
            case JobStatus.RUNNING:
                self._enter(JobStatus.RESTARTING)
                self._start_again()
            case JobStatus.RESTARTING:
                self._start_again()
            case JobStatus.CREATED:
                self.start()

    def fail_at_once(self, failure: Failure) -> None:
        """End a job that an earlier job manager left behind: it can never be started again."""
        self.failures.recall()
        if self.life.status.terminal:
            return
        self.failures.add(failure)
        match self.life.status:
            case JobStatus.CANCELLING:
                self._enter(JobStatus.CANCELED)
                return
            case JobStatus.CREATED | JobStatus.RUNNING | JobStatus.RESTARTING:
                self._enter(JobStatus.FAILING)
        self._enter(JobStatus.FAILED)

    def cancel(self) -> None:
        """Kill the workers and end as CANCELED; nothing to do when it is on its way already."""
        status = self.life.status
        if self._is_finishing or status.terminal or status is JobStatus.CANCELLING:
            return
        self._enter(JobStatus.CANCELLING)
        self._wants_slots, self.waiting_for = False, None
        if self._deployment is None:
            self._enter(JobStatus.CANCELED)
        elif not self._deployment.attempt.ending:
            self._deployment.attempt.move_all(TaskStatus.CANCELING, now_ms())
            self._deployment.end()

    def request(self, request: SnapshotRequest) -> None:
        """Ask for a savepoint, checkpoint or stop."""
        self.snapshots.request(request, running=self.life.status is JobStatus.RUNNING)
        if self.life.status.terminal:
            self.snapshots.give_up(*self._refusal())

    @property
    def slots_held(self) -> int:
        """How many slots the present attempt has."""
        return 0 if self._deployment is None else len(self._deployment.attempt.workers)

    @property
    def settings(self) -> Mapping[str, str]:
        """What it was submitted with, and what was changed since."""
        return self.row.settings

    def put_settings(self, settings: Mapping[str, str], *, soon: bool = False) -> None:
        """Change settings, for good. Raises StorageError, unless `soon` is enough."""
        self._around.store.set_settings(self.row.job_id, settings, soon=soon)
        self.row = replace(self.row, settings=settings)

    def limit_reading(self, uid: str | None, limit: Limit) -> None:
        """Change how fast a source, or each, may read. Raises ConfigError, StorageError."""
        rates = self.read_limits.changed(uid, limit)
        self.put_settings({**self.settings, READ_LIMIT: setting_of(rates)})
        self.read_limits.rates = rates
        if self._deployment is not None:
            self._deployment.send_limits()

    def rescale(self, trigger_id: str, wanted: Parallelism) -> None:
        """Begin to change the parallelism. Raises StorageError."""
        suspension = self.rescaling.begin(trigger_id, wanted).suspension()
        if self._deployment is not None:
            self.request(suspension)
            return
        # Nothing runs: it waits for slots, or for its next attempt.
        self.rescaling.suspended = True
        if self._wants_slots:
            self.start()

    # Attempts.

    def on_slots(self) -> None:
        """Slots may be free: begin an attempt if one is due."""
        if not self._wants_slots:
            return
        attempt_id = secrets.token_hex(16)
        held = self._around.fleet.allocate(attempt_id, self.plan.slots)
        if isinstance(held, Shortage):
            self.attempt, self.waiting_for = None, str(held)
            return
        self._wants_slots, self.waiting_for = False, None
        number = self._around.store.attempts(self.row.job_id)
        self.attempt = Attempt.begin(attempt_id, number, held, tasks_of(self.plan), now_ms())
        self._deploy(self.attempt)

    def _deploy(self, attempt: Attempt) -> None:
        store = self._around.store
        attempt.restored_from = store.recovery_point(self.row.job_id)
        point = attempt.restored_from
        folder = self.row.restore_path if point is None else point.path
        store.add_attempt(self.row.job_id, attempt.id, attempt.number, now_ms(), folder)
        self._deployment = Deployment(
            attempt, self.row, self.plan, self._around, self, self.read_limits
        )
        self._work.start(self._deployment.begin(folder))

    def send(self, message: control.Message) -> None:
        """Tell every worker of the present attempt."""
        if self._deployment is not None:
            self._deployment.send(message)

    # From the deployment.

    def on_running(self) -> None:
        """Every subtask processes."""
        self._enter(JobStatus.RUNNING)
        if self.rescaling.on_running():
            self._keep_counts()
        if self.attempt is not None and self.attempt.restored is not None:
            self.snapshots.log.restored(self.attempt.restored)
        self.snapshots.begin()

    def on_report(self, report: control.Metrics) -> None:
        """A worker has told its numbers."""
        self.statistics.on_report(report, now_ms() // 1000)

    def on_snapshot_message(self, message: control.Message) -> None:
        """A worker said something that the snapshots need."""
        self.snapshots.on_message(message)

    def on_failure(self, failure: Failure) -> None:
        """The first failure of an attempt decides; others are kept beside it."""
        deployment = self._deployment
        if deployment is None or self.life.status is JobStatus.CANCELLING:
            return
        if deployment.attempt.finishing:
            log.warning("job %s: after all was committed: %s", self.row.name, failure.message)
            return
        if deployment.attempt.ending:
            self.failures.add_concurrent(failure)
            return
        decision = self.failures.add(failure)
        if self.rescaling.go_back(failure.message):
            decision = Restart(0)
        match decision:
            case Restart(delay_ms):
                log.warning("job %s restarts: %s", self.row.name, failure.message)
                self._delay_ms = delay_ms
                if self.life.status is not JobStatus.RESTARTING:
                    self._enter(JobStatus.RESTARTING)
            case GiveUp(reason):
                log.error("job %s fails, %s: %s", self.row.name, reason, failure.message)
                self._enter(JobStatus.FAILING)
        deployment.attempt.move_all(TaskStatus.CANCELED, now_ms())
        deployment.end()

    def on_over(self) -> None:
        """No worker runs any more: decide what follows once a manifest on its way is written."""
        self._work.start(self._follow())

    async def _follow(self) -> None:
        deployment = self._deployment
        assert deployment is not None
        attempt = deployment.attempt
        finished = self._is_finishing
        suspended = attempt.finishing and not finished
        goes_on = suspended and self.life.status is JobStatus.RUNNING
        reason = FailureReason.RESCALED if goes_on else self._refusal()[0]
        await self.snapshots.end(reason)
        await self.sweep_state()
        self._deployment = None
        self._sweep(attempt)
        if suspended and self.life.status is JobStatus.RUNNING:
            self._resume(attempt)
            return
        if finished:
            if self.life.status is not JobStatus.RUNNING:
                self._enter(JobStatus.RUNNING)
            self._enter(JobStatus.FINISHED)
        elif self.life.status is JobStatus.CANCELLING:
            attempt.move_all(TaskStatus.CANCELED, now_ms())
            self._enter(JobStatus.CANCELED)
        else:
            if self.life.status is JobStatus.FAILING:
                self._enter(JobStatus.FAILED)
            else:
                self._work.start(self._restart(self._delay_ms))
        self._around.fleet.release(attempt.id)

    def _resume(self, attempt: Attempt) -> None:
        """Start again at once, before anyone else gets the slots."""
        fleet = self._around.fleet
        self._enter(JobStatus.RESTARTING)
        fleet.slots.release(attempt.id)
        self.start()
        if self._wants_slots and self.rescaling.go_back(str(self.waiting_for)):
            self.start()
        fleet.on_slots()

    async def _restart(self, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)
        if self.life.status is JobStatus.RESTARTING:
            self._start_again()

    def _start_again(self) -> None:
        self.restarts += 1
        self._keep_counts()
        self.start()

    def _keep_counts(self) -> None:
        rescales = self.rescaling.count
        self._around.store.set_counts(self.row.job_id, self.restarts, rescales)

    # State.

    @property
    def _is_finishing(self) -> bool:
        """Whether all work of the job is done, and only its workers have to end."""
        attempt = self.attempt
        if attempt is None or not attempt.finishing:
            return False
        return not (attempt.running and self.rescaling.suspended)

    def _enter(self, status: JobStatus) -> None:
        self.life.move(status, now_ms())
        self._around.store.set_status(self.row.job_id, status, self.life.entered_ms)
        log.info("job %s (%s) is %s", self.row.name, self.row.job_id, status)
        if status.terminal:
            self.snapshots.give_up(*self._refusal())
            self.rescaling.give_up(f"the job is {status}")
            self._on_end(self)

    def _refusal(self) -> tuple[FailureReason, str | None]:
        """Why a snapshot that was asked for will never be taken."""
        match self.life.status:
            case JobStatus.RESTARTING:
                return FailureReason.TASK_LOST, None
            case JobStatus.CANCELLING | JobStatus.CANCELED:
                return FailureReason.JOB_CANCELED, None
            case JobStatus.FAILING | JobStatus.FAILED:
                return FailureReason.JOB_FAILED, None
        point = self._around.store.recovery_point(self.row.job_id)
        if point is not None and point.kind is SnapshotKind.SAVEPOINT:
            return FailureReason.JOB_STOPPED, f"its savepoint is {point.path}"
        return FailureReason.INPUT_ENDED, None

    def _sweep(self, attempt: Attempt) -> None:
        """Remove sockets that killed workers left behind."""
        for slot in attempt.workers:
            data_socket(self._around.runtime, attempt.id, slot).unlink(missing_ok=True)

    async def end_work(self) -> None:
        """The job manager ends: what waits to be started again is left to the next one."""
        await self._work.end()

    async def sweep_state(self) -> None:
        """Remove the state that killed workers had on disk."""
        await sweep_state(self.plan, self.row.settings)

    def on_operation(self, operation: Operation) -> None:
        """A requested snapshot is complete or has failed."""
        if not self.rescaling.on_suspended(operation):
            self._on_operation(operation)

    def on_too_many_failures(self, reason: FailureReason, message: str) -> None:
        """Restart from the latest complete snapshot."""
        name = f"Checkpoint{reason.name.title().replace('_', '')}"
        self.on_failure(Failure(name, message, now_ms(), Domain.EXTERNAL))

    def _on_bug(self, error: BaseException) -> None:
        """What this master does itself has failed."""
        say_loudly(error)
        name, message = type(error).__name__, str(error) or type(error).__name__
        self.on_failure(Failure(name, message, now_ms(), Domain.INTERNAL))
