"""Replays: a version of a job run from a savepoint beside the live job."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Replay(models.Model):
    """One replay, from the plan to its end.

    planned → starting → replaying → caught_up → finished
                 any of these → abandoned | failed
    """

    class Status(models.TextChoices):
        """How far it is."""

        PLANNED = "planned", "Planned"
        STARTING = "starting", "Starting"
        REPLAYING = "replaying", "Replaying"
        CAUGHT_UP = "caught_up", "Caught up"
        FINISHED = "finished", "Finished"
        ABANDONED = "abandoned", "Abandoned"
        FAILED = "failed", "Failed"

    number = models.PositiveIntegerField(unique=True)
    """Unique over all jobs: replay 7 is `r-7`, its run is named `<job>@r-7`."""
    job = models.ForeignKey("jobs.Job", on_delete=models.PROTECT, related_name="replays")
    savepoint = models.ForeignKey(
        "snapshots.Savepoint", on_delete=models.PROTECT, related_name="replays"
    )
    version = models.ForeignKey("jobs.JobVersion", on_delete=models.PROTECT, related_name="replays")
    run = models.OneToOneField(
        "jobs.Run", null=True, blank=True, on_delete=models.PROTECT, related_name="replay"
    )
    parallelism = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PLANNED)
    event_time_start = models.DateTimeField(null=True, blank=True)
    event_time_now = models.DateTimeField(null=True, blank=True)
    live_event_time = models.DateTimeField(null=True, blank=True)
    speed = models.FloatField(null=True, blank=True)
    """Event seconds per wall second."""
    eta_low = models.DateTimeField(null=True, blank=True)
    eta_high = models.DateTimeField(null=True, blank=True)
    """Between these it meets the live job; both null: not known, or it is not catching up."""
    note = models.CharField(max_length=500, blank=True)
    """What holds it up, in one sentence: "not catching up: …"."""
    caught_up_at = models.DateTimeField(null=True, blank=True)
    failure = models.TextField(blank=True)
    history = models.JSONField(default=list, blank=True)
    """Points of the chart, oldest first: [wall ms, replay's event ms, live event ms]."""
    samples = models.JSONField(default=list, blank=True)
    """The latest samples, from which speed and ETA are worked out; `replay/progress.py`."""
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["-number"]
        indexes = [models.Index(fields=["job", "-number"])]

    def __str__(self) -> str:
        return f"{self.job.name}@{self.name}"

    @property
    def name(self) -> str:
        """How people and sinks call it."""
        return f"r-{self.number}"

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended for good."""
        return self.status in ENDED


ENDED = (Replay.Status.FINISHED, Replay.Status.ABANDONED, Replay.Status.FAILED)
OPEN = tuple(status for status in Replay.Status if status not in ENDED)
