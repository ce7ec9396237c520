"""Which savepoints of a job are kept, and what was found where they are kept."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavepointPolicy(models.Model):
    """Rules of retention and verification of one job; a null rule is none. No rule: all is kept."""

    job = models.OneToOneField(
        "jobs.Job", on_delete=models.CASCADE, related_name="savepoint_policy"
    )
    enabled = models.BooleanField(default=True)
    keep_last = models.PositiveIntegerField(null=True, blank=True)
    keep_days = models.PositiveIntegerField(null=True, blank=True)
    daily = models.PositiveIntegerField(null=True, blank=True)
    """The newest of each day is kept, for so many days that have one."""
    weekly = models.PositiveIntegerField(null=True, blank=True)
    monthly = models.PositiveIntegerField(null=True, blank=True)
    zone = models.CharField(max_length=64, default="UTC")
    """IANA name: in it days, weeks and months change."""
    by_hand = models.BooleanField(default=False)
    """Whether the rules are also for savepoints that people took."""
    grace_hours = models.FloatField(default=24.0)
    """Between the mark and the deletion."""
    verify_days = models.FloatField(null=True, blank=True)
    """Verify each savepoint again after so many days; null: only when asked."""
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        verbose_name_plural = "savepoint policies"

    def __str__(self) -> str:
        return f"savepoint policy of {self.job.name}"


class StorageScan(models.Model):
    """The last look at the folder in which one cluster keeps savepoints."""

    cluster = models.OneToOneField("backends.Cluster", on_delete=models.CASCADE)
    at = models.DateTimeField()
    folders = models.PositiveIntegerField(default=0)
    problem = models.TextField(blank=True)
    """Why the folder could not be listed; what was found before stands."""

    def __str__(self) -> str:
        return f"scan of {self.cluster} at {self.at:%Y-%m-%d %H:%M:%S}"


class StrayFolder(models.Model):
    """Files of a savepoint that no row is about."""

    cluster = models.ForeignKey("backends.Cluster", on_delete=models.CASCADE)
    job = models.ForeignKey("jobs.Job", null=True, blank=True, on_delete=models.CASCADE)
    """The job that its folder is named after, if there is one."""
    location = models.CharField(max_length=500)
    is_complete = models.BooleanField()
    size_bytes = models.BigIntegerField()
    changed_at = models.DateTimeField()
    found_at = models.DateTimeField()

    class Meta:
        ordering = ["location"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "location"], name="one_row_per_stray_folder")
        ]

    def __str__(self) -> str:
        return self.location
