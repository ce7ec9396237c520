"""The audit log: rows are added, never changed; `append_only.py` has the database refuse it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q


class AuditEntry(models.Model):
    """One thing that one person (or, without an actor, the platform) did."""

    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT
    )
    action = models.CharField(max_length=64)
    """What was done, as `object.verb`: `job.create`, `savepoint.request`."""
    target = models.CharField(max_length=200)
    """What it was done to, in words."""
    job = models.ForeignKey(
        "jobs.Job", null=True, blank=True, on_delete=models.PROTECT, related_name="audit"
    )
    team = models.ForeignKey(
        "access.Team", null=True, blank=True, on_delete=models.PROTECT, related_name="audit"
    )
    """Whose people may read it, when it is about no job; neither: platform admins and the actor."""
    reason = models.CharField(max_length=500, blank=True)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    request_id = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["job", "-id"]),
            models.Index(fields=["actor", "-id"]),
            models.Index(fields=["action", "-id"]),
        ]
        constraints = [models.CheckConstraint(condition=~Q(action=""), name="audit_has_action")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor or 'platform'} {self.action} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the entry; an entry that exists cannot be changed."""
        if self.pk is not None:
            msg = "the audit log is append-only: an entry cannot be changed"
            raise TypeError(msg)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Refuse."""
        msg = "the audit log is append-only: an entry cannot be deleted"
        raise TypeError(msg)
