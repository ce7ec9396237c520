"""Operations: long actions as rows, so that no crash loses one.

    pending → running → succeeded
                      ↘ failed | cancelled

Guarantee   Of one scope at most one operation is unfinished at a time: the database enforces it.
            `Operation.state` and `step` change only through `operations/lifecycle.py`.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q


class Operation(models.Model):
    """One long action: what is asked, how far it is, what came out."""

    class State(models.TextChoices):
        """How it stands."""

        PENDING = "pending", "Waiting"
        RUNNING = "running", "Running"
        SUCCEEDED = "succeeded", "Done"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=32)
    """One of those in `kinds/`."""
    scope = models.CharField(max_length=100)
    """What it has for itself while it runs: `job:7`, `replay:3`, `savepoint:12`."""
    job = models.ForeignKey("jobs.Job", on_delete=models.PROTECT, related_name="operations")
    run = models.ForeignKey(
        "jobs.Run", null=True, blank=True, on_delete=models.PROTECT, related_name="operations"
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """Who asked; nobody when a schedule or the reconciler did."""
    idempotency_key = models.CharField(max_length=100, unique=True)
    reason = models.CharField(max_length=500, blank=True)
    """Why it was asked for, in the words of whoever did."""
    params = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=State.choices, default=State.PENDING)
    step = models.CharField(max_length=32, blank=True)
    """The step that is to be done next; empty when all are done."""
    text = models.CharField(max_length=500, blank=True)
    """What it does just now, in one sentence."""
    attempt = models.PositiveIntegerField(default=0)
    """How often the present step was tried."""
    deadline = models.DateTimeField()
    """When the present step is given up."""
    give_up_at = models.DateTimeField(null=True, blank=True)
    """When all of it is given up; what it then has to put right has time of its own."""
    cancel_asked_at = models.DateTimeField(null=True, blank=True)
    """When somebody wished it to end without its result."""
    cancel_sentence = models.CharField(max_length=500, blank=True)
    """Who wished that, and why."""
    not_before = models.DateTimeField()
    """When it wants to go on."""
    lease_until = models.DateTimeField(null=True, blank=True)
    """Until when a worker has it for itself; past or null: anybody may take it."""
    lease_token = models.CharField(max_length=32, blank=True)
    result = models.JSONField(default=dict)
    """What the steps found out, each under names of its own."""
    error = models.TextField(blank=True)
    """Why it failed, in one sentence."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["job", "-created_at"]),
            models.Index(fields=["state", "not_before"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["scope"],
                condition=Q(state__in=["pending", "running"]),
                name="one_unfinished_operation_per_scope",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.job.name} ({self.state})"

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in UNFINISHED


UNFINISHED = (Operation.State.PENDING, Operation.State.RUNNING)


class OperationEvent(models.Model):
    """One thing that happened in an operation."""

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    step = models.CharField(max_length=32, blank=True)
    text = models.CharField(max_length=500)

    class Meta:
        ordering = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.at:%H:%M:%S} {self.step}: {self.text}"
