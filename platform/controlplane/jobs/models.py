"""Jobs, versions, runs, and what keeps a job running.

    Job ──< JobVersion       an artifact and its number
     ├────< Run              one start of one version on one cluster; the engine's own restarts are
     │                       attempts of the same run
     └───── Upkeep           how the reconciler stands with the job

Guarantee   `Job.desired_state` and `Run.state` change only through `jobs/lifecycle.py`.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings as conf
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q


class Job(models.Model):
    """A logical job: it keeps its name and history while versions, runs and engines change."""

    class Desired(models.TextChoices):
        """What people want of it."""

        RUNNING = "running", "Running"
        STOPPED = "stopped", "Stopped"

    name = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")],
    )
    team = models.ForeignKey("access.Team", on_delete=models.PROTECT, related_name="jobs")
    cluster = models.ForeignKey("backends.Cluster", on_delete=models.PROTECT, related_name="jobs")
    desired_state = models.CharField(
        max_length=16, choices=Desired.choices, default=Desired.STOPPED
    )
    settings = models.JSONField(default=dict)
    """`jobs/settings.py` says what each means and its default."""
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        conf.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class JobVersion(models.Model):
    """One uploaded artifact of a job; never changed once it is here."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    filename = models.CharField(max_length=120)
    """Name of the file as the engine will see it."""
    checksum = models.CharField(max_length=64)
    """SHA-256; also the artifact's name on disk."""
    size_bytes = models.PositiveIntegerField()
    note = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        conf.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="one_version_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.job.name} v{self.number}"

    @property
    def artifact(self) -> Path:
        """Where the artifact is kept, under its own hash."""
        return Path(conf.HEADWATER_ARTIFACTS) / self.checksum[:2] / self.checksum


class RunState(models.TextChoices):
    """Flink's job states, as the engine reports them, and LOST."""

    INITIALIZING = "INITIALIZING", "Starting"
    CREATED = "CREATED", "Waiting for slots"
    RUNNING = "RUNNING", "Running"
    RESTARTING = "RESTARTING", "Restarting"
    FAILING = "FAILING", "Failing"
    FAILED = "FAILED", "Failed"
    CANCELLING = "CANCELLING", "Cancelling"
    CANCELED = "CANCELED", "Cancelled"
    FINISHED = "FINISHED", "Finished"
    SUSPENDED = "SUSPENDED", "Suspended"
    RECONCILING = "RECONCILING", "Reconciling"
    LOST = "LOST", "Lost: the engine no longer knows it"


TERMINAL = frozenset({RunState.FAILED, RunState.CANCELED, RunState.FINISHED, RunState.LOST})

NO_RUN = "STOPPED"
"""What is shown as the state of a job that was never started."""


class Run(models.Model):
    """One start of one version on one cluster."""

    class Purpose(models.TextChoices):
        """Why it was started."""

        LIVE = "live", "Live"
        REPLAY = "replay", "Replay"

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="runs")
    version = models.ForeignKey(JobVersion, on_delete=models.PROTECT, related_name="runs")
    cluster = models.ForeignKey("backends.Cluster", on_delete=models.PROTECT, related_name="runs")
    engine_job_id = models.CharField(max_length=32, unique=True)
    """32 hex digits, chosen here before the engine is asked: a start asked twice starts one job."""
    purpose = models.CharField(max_length=16, choices=Purpose.choices, default=Purpose.LIVE)
    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.INITIALIZING)
    state_since = models.DateTimeField()
    parallelism = models.PositiveIntegerField(default=1)
    restored_from = models.ForeignKey(
        "snapshots.Savepoint",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="restored_runs",
    )
    restored_path = models.CharField(max_length=500, blank=True)
    """Snapshot folder it was started from; also set when that is no savepoint of the catalogue."""
    written_from = models.DateTimeField(null=True, blank=True)
    """Event time from which on it writes; null: whatever comes."""
    written_until = models.DateTimeField(null=True, blank=True)
    """Event time up to which it writes, and then ends by itself; null: it goes on."""
    dropped = models.JSONField(default=list, blank=True)
    """State that was left behind with consent: uid, or uid/state."""
    accepted_gaps = models.JSONField(default=list, blank=True)
    """Uids of sources that go on without input which is not there any more: somebody agreed."""
    settings = models.JSONField(default=dict, blank=True)
    """The job's settings at its start; a later change does not concern it."""
    reason = models.CharField(max_length=500, blank=True)
    """Why it was started, and from what: one sentence."""
    started_by = models.ForeignKey(
        conf.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """Who started it; nobody when the platform did."""
    attempt = models.PositiveIntegerField(default=0)
    """The engine's attempts before the present one, that is, its restarts."""
    restarted_at = models.DateTimeField(null=True, blank=True)
    """When the engine was first seen to have restarted it the last time."""
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    last_seen = models.DateTimeField(null=True, blank=True)
    plan = models.JSONField(default=dict, blank=True)
    """The engine's plan, as `/jobs/:id/plan` gave it; kept when the engine is gone."""
    failure = models.TextField(blank=True)
    """Why it failed or restarted last, in one sentence."""

    class Meta:
        ordering = ["-started_at", "-id"]
        indexes = [models.Index(fields=["job", "-started_at"])]
        constraints = [
            # Two live runs of one job would write every row twice.
            models.UniqueConstraint(
                fields=["job"],
                condition=Q(purpose="live")
                & ~Q(state__in=["FAILED", "CANCELED", "FINISHED", "LOST"]),
                name="one_live_run_per_job",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job.name} run {self.pk} ({self.state})"

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended for good."""
        return self.state in TERMINAL


class RunFailure(models.Model):
    """Why one attempt of a run ended: mirrored from the engine, so that it outlives the engine."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="failures")
    at = models.DateTimeField()
    """By the engine's clock; a run has one root cause at a time."""
    name = models.CharField(max_length=200)
    """Type of the error."""
    sentence = models.TextField()
    trace = models.TextField(blank=True)
    domain = models.CharField(max_length=16, blank=True)
    """user, external or internal; empty when the engine does not say."""
    operator = models.CharField(max_length=300, blank=True)
    task = models.CharField(max_length=500, blank=True)
    """Vertex and subtask; empty when no single one is to blame."""
    task_manager = models.CharField(max_length=200, blank=True)
    verdict = models.TextField(blank=True)
    """Why no restart followed; empty when one did."""
    echoes = models.JSONField(default=list)
    """What other subtasks said while they were being ended: `name`, `sentence`, `task`, `at_ms`."""
    fingerprint = models.CharField(max_length=40)
    """The same for failures that differ in numbers only."""
    restarted_at = models.DateTimeField(null=True, blank=True)
    """When state was restored after it; null when no restore was seen."""
    restored_checkpoint = models.BigIntegerField(null=True, blank=True)
    restored_savepoint = models.BooleanField(default=False)
    """Whether that checkpoint is a savepoint."""
    restored_path = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["run", "at"], name="one_failure_at_a_time"),
        ]
        indexes = [models.Index(fields=["run", "fingerprint", "-at"])]

    def __str__(self) -> str:
        return f"{self.name} of run {self.run_id} at {self.at:%F %T}"


class Upkeep(models.Model):
    """How the reconciler, which keeps wanted jobs running, stands with one job."""

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="upkeep")
    paused = models.BooleanField(default=False)
    paused_by = models.ForeignKey(
        conf.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    paused_reason = models.CharField(max_length=500, blank=True)
    tries = models.PositiveIntegerField(default=0)
    """Starts in a row after which the job was not healthy."""
    not_before = models.DateTimeField(null=True, blank=True)
    """When it may be started again."""
    decision = models.CharField(max_length=500, blank=True)
    """What was decided last, and why: one sentence."""
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "upkeep"

    def __str__(self) -> str:
        return f"upkeep of {self.job.name}: {self.decision}"
