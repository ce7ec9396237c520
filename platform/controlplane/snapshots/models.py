"""Checkpoints (the engine's, automatic), savepoints (a person's, kept) and their schedules."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class Checkpoint(models.Model):
    """One checkpoint of one run, mirrored from the engine, so that history survives it."""

    class Kind(models.TextChoices):
        """What was taken."""

        CHECKPOINT = "checkpoint", "Checkpoint"
        SAVEPOINT = "savepoint", "Savepoint"

    class Status(models.TextChoices):
        """How it ended."""

        IN_PROGRESS = "in_progress", "In progress"
        COMPLETED = "completed", "Completed"
        FAILED = "failed", "Failed"

    run = models.ForeignKey("jobs.Run", on_delete=models.CASCADE, related_name="checkpoints")
    engine_checkpoint_id = models.BigIntegerField()
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.CHECKPOINT)
    status = models.CharField(max_length=16, choices=Status.choices)
    trigger_at = models.DateTimeField()
    duration_ms = models.BigIntegerField(null=True, blank=True)
    size_bytes = models.BigIntegerField(null=True, blank=True)
    external_path = models.CharField(max_length=500, blank=True)
    failure = models.TextField(blank=True)
    detail = models.JSONField(default=dict, blank=True)
    """What else the engine said of it: tasks, alignment, phases."""

    class Meta:
        ordering = ["-trigger_at", "-engine_checkpoint_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "engine_checkpoint_id"], name="one_row_per_checkpoint"
            ),
        ]
        indexes = [models.Index(fields=["run", "-trigger_at"])]

    def __str__(self) -> str:
        return f"checkpoint {self.engine_checkpoint_id} of run {self.run_id} ({self.status})"


class Savepoint(models.Model):
    """One savepoint in the catalogue."""

    class Origin(models.TextChoices):
        """Why it was taken."""

        MANUAL = "manual", "Taken by hand"
        SCHEDULED = "scheduled", "By schedule"
        STOP = "stop", "Before a stop"
        UPGRADE = "upgrade", "Before an upgrade"
        BEFORE_REPLAY = "before_replay", "Before a replay"
        IMPORTED = "imported", "Imported"

    class Status(models.TextChoices):
        """Whether it can be used."""

        CREATING = "creating", "Being taken"
        COMPLETED = "completed", "Complete"
        FAILED = "failed", "Failed"
        DELETED = "deleted", "Deleted"

    job = models.ForeignKey("jobs.Job", on_delete=models.PROTECT, related_name="savepoints")
    run = models.ForeignKey(
        "jobs.Run", null=True, blank=True, on_delete=models.PROTECT, related_name="savepoints"
    )
    version = models.ForeignKey(
        "jobs.JobVersion",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="savepoints",
    )
    location = models.CharField(max_length=500, blank=True)
    """Folder of the savepoint; empty until it is complete."""
    origin = models.CharField(max_length=16, choices=Origin.choices)
    label = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.CREATING)
    failure = models.TextField(blank=True)
    checkpoint_id = models.BigIntegerField(null=True, blank=True)
    event_time = models.DateTimeField(null=True, blank=True)
    """Event-time position: the lowest watermark in it."""
    size_bytes = models.BigIntegerField(null=True, blank=True)
    source_positions = models.JSONField(default=dict, blank=True)
    """Source uid → split id → {"position", "watermark", …}, from the manifest."""
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["job", "location"],
                condition=~Q(location=""),
                name="one_row_per_savepoint_location",
            ),
        ]
        indexes = [models.Index(fields=["job", "-created_at"])]

    def __str__(self) -> str:
        return f"savepoint {self.pk} of {self.job.name} ({self.status})"


class SavepointSchedule(models.Model):
    """Take a savepoint of a job every so many minutes."""

    class Result(models.TextChoices):
        """How the last run went."""

        NONE = "", "Not run yet"
        STARTED = "started", "Started"
        SUCCEEDED = "succeeded", "Succeeded"
        FAILED = "failed", "Failed"
        SKIPPED = "skipped", "Skipped"

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="schedules")
    every_minutes = models.FloatField()
    enabled = models.BooleanField(default=True)
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
        ordering = ["job", "every_minutes"]
        constraints = [
            models.CheckConstraint(
                condition=Q(every_minutes__gte=0.1), name="schedule_at_most_every_6_seconds"
            ),
        ]

    def __str__(self) -> str:
        return f"savepoint of {self.job.name} every {self.every_minutes:g} minutes"

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
