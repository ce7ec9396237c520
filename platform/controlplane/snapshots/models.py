"""Checkpoints (the engine's, automatic) and savepoints (a person's, kept).

Schedules and rules of retention are in `schedule_models.py` and `policy_models.py`.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from controlplane.snapshots.policy_models import SavepointPolicy, StorageScan, StrayFolder
from controlplane.snapshots.schedule_models import SavepointSchedule

__all__ = [
    "ENDED",
    "Checkpoint",
    "Savepoint",
    "SavepointPolicy",
    "SavepointSchedule",
    "StorageScan",
    "StrayFolder",
]


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
    """One savepoint in the catalogue. `lifecycle.py` says which status follows which."""

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
        MARKED = "marked", "Marked for deletion"
        DELETING = "deleting", "Being deleted"
        DELETED = "deleted", "Deleted"
        DETACHED = "detached", "Detached"

    class Verdict(models.TextChoices):
        """What the last verification found."""

        UNKNOWN = "", "Not verified"
        WHOLE = "whole", "Verified"
        DAMAGED = "damaged", "Damaged"
        UNREADABLE = "unreadable", "Cannot be read"

    job = models.ForeignKey("jobs.Job", on_delete=models.PROTECT, related_name="savepoints")
    run = models.ForeignKey(
        "jobs.Run", null=True, blank=True, on_delete=models.PROTECT, related_name="savepoints"
    )
    """The run that it was taken of; its own `restored_from` is the savepoint before it."""
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
    """Source uid → split id → the position where reading goes on, from the manifest."""
    contents = models.JSONField(default=dict, blank=True)
    """Of whom and what, as `backends/manifests.py` keeps it; empty is unknown."""
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    taken_at = models.DateTimeField(null=True, blank=True)
    """When the state in it was saved: of an imported one before it came here."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    pinned = models.BooleanField(default=False)
    """A person wants it kept, whatever any rule says."""
    expires_at = models.DateTimeField(null=True, blank=True)
    """Kept until then, and not longer, whatever any rule says."""
    verdict = models.CharField(
        max_length=16, choices=Verdict.choices, default=Verdict.UNKNOWN, blank=True
    )
    verified_at = models.DateTimeField(null=True, blank=True)
    problems = models.JSONField(default=list, blank=True)
    """A sentence per file that was found missing, torn or altered."""
    inputs = models.JSONField(default=dict, blank=True)
    """What its sources said when they were last asked for the input that a restore needs, see
    `inputs.py`; empty: nobody has asked."""
    missing_since = models.DateTimeField(null=True, blank=True)
    """Since when its files are known to be gone."""
    delete_at = models.DateTimeField(null=True, blank=True)
    """When a marked one is deleted; of one whose deletion failed, when that is tried again."""
    delete_reason = models.CharField(max_length=300, blank=True)
    marked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """Who marked it; nobody: a rule did, and takes the mark back when it thinks better of it."""
    delete_tries = models.PositiveIntegerField(default=0)
    delete_failure = models.TextField(blank=True)
    """Why the last try to delete it failed."""
    ended_at = models.DateTimeField(null=True, blank=True)
    """When it was deleted or detached."""

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["job", "location"],
                condition=~Q(location="") & ~Q(status__in=["deleted", "detached"]),
                name="one_row_per_kept_savepoint",
            ),
        ]
        indexes = [
            models.Index(fields=["job", "-created_at"]),
            models.Index(fields=["status", "delete_at"]),
        ]

    def __str__(self) -> str:
        return f"savepoint {self.pk} of {self.job.name} ({self.status})"


ENDED = (Savepoint.Status.DELETED, Savepoint.Status.DETACHED)
"""Not in the catalogue any more; the rows stay, so that history can name them."""
