"""Schedules of savepoints, and how their last run went."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class SavepointSchedule(models.Model):
    """Take a savepoint of a job, regularly: every so many minutes, or when a cron line says."""

    class Late(models.TextChoices):
        """What becomes of a run that the platform was not there for."""

        ONCE = "once", "Run once, now"
        SKIP = "skip", "Skip it"

    class Result(models.TextChoices):
        """How the last run went."""

        NONE = "", "Not run yet"
        STARTED = "started", "Started"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        SKIPPED = "skipped", "Skipped"

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="schedules")
    every_minutes = models.FloatField(null=True, blank=True)
    """Null: `cron` says when."""
    cron = models.CharField(max_length=100, blank=True)
    """Five fields, in the time zone; empty: `every_minutes` says when."""
    zone = models.CharField(max_length=64, default="UTC")
    """IANA name: in it cron lines and blackout windows are read, and days change."""
    jitter_s = models.PositiveIntegerField(default=0)
    """A run is at most so much later than its time says; always the same for the same time."""
    blackouts = models.JSONField(default=list, blank=True)
    """Windows in which nothing is taken: {"days": [0 is Monday …], "from": "22:00", "to": …}."""
    late = models.CharField(max_length=8, choices=Late.choices, default=Late.ONCE)
    skip_unhealthy = models.BooleanField(default=False)
    """Skip when the job's newest checkpoint has failed."""
    skip_unchanged = models.BooleanField(default=False)
    """Skip when event time stands where the newest savepoint left it."""
    enabled = models.BooleanField(default=True)
    planned_at = models.DateTimeField()
    """The next time on its grid; `next_run_at` is that and the jitter."""
    next_run_at = models.DateTimeField()
    last_run_at = models.DateTimeField(null=True, blank=True)
    last_result = models.CharField(
        max_length=16, choices=Result.choices, default=Result.NONE, blank=True
    )
    last_reason = models.CharField(max_length=500, blank=True)
    """Why the last run was skipped."""
    last_operation = models.ForeignKey(
        "operations.Operation", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["job", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(every_minutes__isnull=True) | Q(every_minutes__gte=0.1),
                name="schedule_at_most_every_6_seconds",
            ),
            models.CheckConstraint(
                condition=Q(every_minutes__isnull=False, cron="")
                | (Q(every_minutes__isnull=True) & ~Q(cron="")),
                name="schedule_has_an_interval_or_a_cron_line",
            ),
        ]

    def __str__(self) -> str:
        return f"savepoint of {self.job.name} {self.words}"

    @property
    def words(self) -> str:
        """When it runs, in a few words."""
        if self.every_minutes is None:
            return f"at {self.cron} {self.zone}"
        return f"every {self.every_minutes:g} min"

    @property
    def result(self) -> SavepointSchedule.Result:
        """How the last run went; once its operation has ended, that operation says."""
        operation = self.last_operation
        if operation is None or not operation.is_finished:
            return self.Result(self.last_result)
        succeeded = operation.state == operation.State.SUCCEEDED
        return self.Result.SUCCEEDED if succeeded else self.Result.FAILED

    @property
    def reason(self) -> str:
        """Why the last run was skipped or failed."""
        operation = self.last_operation
        return self.last_reason if operation is None else operation.error
