"""Replays: a version of a job run from a savepoint beside the live job."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models

from controlplane.replay.limits import Limit

LEVEL_FOR_S = 5.0
"""Longer than a burst of a source lasts, short enough for a first replay."""
BACK_DAYS = 7.0
"""A week: whoever looks at the new results every week has seen them."""


class Replay(models.Model):
    """One replay, from the plan to its end.

    planned → starting → replaying → caught_up → cutting_over → promoted
                 any of these → finished | abandoned | failed
                                promoted → rolling_back → rolled_back | failed
    """

    class Status(models.TextChoices):
        """How far it is."""

        PLANNED = "planned", "Planned"
        STARTING = "starting", "Starting"
        REPLAYING = "replaying", "Replaying"
        CAUGHT_UP = "caught_up", "Caught up"
        CUTTING_OVER = "cutting_over", "Cutting over"
        PROMOTED = "promoted", "Promoted"
        ROLLING_BACK = "rolling_back", "Rolling back"
        ROLLED_BACK = "rolled_back", "Rolled back"
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
    stalled_since = models.DateTimeField(null=True, blank=True)
    """Since when it does not catch up; null while it does."""
    level_within_s = models.FloatField(null=True, blank=True)
    """Event seconds behind the live job at which it counts as level; null: what the live job covers
    in five seconds of its own pace."""
    level_for_s = models.FloatField(default=LEVEL_FOR_S)
    """Wall seconds without a break after which it has caught up."""
    level_since = models.DateTimeField(null=True, blank=True)
    """Since when it is level without a break; null: it is not."""
    caught_up_at = models.DateTimeField(null=True, blank=True)
    fell_behind_at = models.DateTimeField(null=True, blank=True)
    """When it fell behind last, after it had caught up."""
    fell_behind = models.CharField(max_length=500, blank=True)
    """By how much then, and why, in one sentence."""
    failure = models.TextField(blank=True)
    until = models.DateTimeField(null=True, blank=True)
    """Event time at which it ends by itself; null: it goes on beside the live job."""
    discards = models.BooleanField(default=False)
    """Whether its sinks write nothing: a dry run."""
    read_limit = models.FloatField(null=True, blank=True)
    """Rows per second that its sources may read; null: as fast as they can."""
    accepted_gaps = models.JSONField(default=list, blank=True)
    """Uids of sources that go on without input which is not there any more: somebody agreed."""
    positions = models.JSONField(default=dict, blank=True)
    """Source uid → where it begins instead of at the savepoint: earliest, or an ISO time."""
    speed_limit = models.FloatField(null=True, blank=True)
    """How many times as fast as real time its event time may pass; null: no such limit."""
    paused = models.BooleanField(default=False)
    """Whether it reads nothing for now; the limit holds again afterwards."""
    old_run = models.ForeignKey(
        "jobs.Run", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """The live run that it took the place of."""
    new_run = models.ForeignKey(
        "jobs.Run", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """The live run that its version has since it was promoted."""
    old_savepoint = models.ForeignKey(
        "snapshots.Savepoint", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    """Where the old version stopped: from there it goes on after a roll-back."""
    cut_at = models.DateTimeField(null=True, blank=True)
    """Event time from which on its version's results count; null: since the savepoint."""
    promoted_at = models.DateTimeField(null=True, blank=True)
    stood_still_ms = models.BigIntegerField(null=True, blank=True)
    """How long no version ran when it was promoted."""
    back_days = models.FloatField(default=BACK_DAYS)
    """Days after its promotion in which it can be rolled back."""
    history = models.JSONField(default=list, blank=True)
    """Points of the chart, oldest first; `sampling.py` says what is in one."""
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
    def limit(self) -> Limit:
        """How fast it may read, when it is not paused."""
        return Limit(self.read_limit, self.speed_limit)

    @property
    def name(self) -> str:
        """How people and sinks call it."""
        return f"r-{self.number}"

    @property
    def is_stalled(self) -> bool:
        """Whether it does not catch up; `note` says why."""
        return bool(self.note) and self.status in (self.Status.STARTING, self.Status.REPLAYING)

    @property
    def back_until(self) -> datetime | None:
        """Until when it can be rolled back; None: it was not promoted."""
        promoted = self.promoted_at
        return None if promoted is None else promoted + timedelta(days=self.back_days)

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended for good."""
        return self.status in ENDED


class ReplayOutput(models.Model):
    """One output of a replay beside the live one, and how far both have been compared."""

    replay = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="outputs")
    uid = models.CharField(max_length=200)
    """Of the sink."""
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=32)
    place = models.CharField(max_length=500)
    """The live target: folder or measurement."""
    bucket = models.CharField(max_length=100, blank=True)
    beside = models.CharField(max_length=520)
    """The replay's."""
    keys = models.JSONField(default=list)
    time_column = models.CharField(max_length=200, blank=True)
    columns = models.JSONField(default=list, blank=True)
    """Names of the columns of numbers that are compared, as far as is known."""
    tolerance = models.JSONField(default=dict, blank=True)
    """Column → {"absolute": …} or {"relative": …} (a part of the old value): by how much values may
    differ and still count as equal."""
    why_not = models.CharField(max_length=500, blank=True)
    """Why it is not compared."""
    trouble = models.CharField(max_length=500, blank=True)
    """Why it could not be compared the last time."""
    compared_to = models.DateTimeField(null=True, blank=True)
    """Event time up to which it has been."""
    closed_to = models.DateTimeField(null=True, blank=True)
    """Event time up to which both sides had written when it was last looked at."""
    compared_at = models.DateTimeField(null=True, blank=True)

    class Exchange(models.TextChoices):
        """How far it has been handed over."""

        NONE = "", "Not exchanged"
        KEPT = "kept", "What gives way is kept"
        SWAPPED = "swapped", "The new one is in its place"
        RETURNING = "returning", "The new one is kept"
        RESTORED = "restored", "The old one is in its place again"

    exchange = models.CharField(
        max_length=16, choices=Exchange.choices, default=Exchange.NONE, blank=True
    )
    """Of points, whose steps cannot be told from the points."""
    new_from = models.DateTimeField(null=True, blank=True)
    """Time of the first point that can be the promoted version's, when it was cut over at an event
    time; null: not known, or none."""
    hours = models.JSONField(default=list, blank=True)
    """[hour in epoch ms, equal, changed, only old, only new], in order."""
    dirty = models.JSONField(default=list, blank=True)
    """[from µs, to µs) of event time that was compared and whose files have changed since."""

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["replay", "uid"], name="one_output_per_sink"),
        ]

    def __str__(self) -> str:
        return f"{self.replay.name} {self.name}"


class SeenFile(models.Model):
    """A file of an output as it was when it was looked at, so that it is not read again."""

    output = models.ForeignKey(ReplayOutput, on_delete=models.CASCADE, related_name="files")
    is_old = models.BooleanField()
    """Whether it is of the live target, not of the replay's."""
    name = models.CharField(max_length=500)
    """Relative to the folder."""
    size = models.BigIntegerField()
    mtime_ns = models.BigIntegerField()
    first_us = models.BigIntegerField(null=True, blank=True)
    """Event time of its first row; null: it has none."""
    last_us = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["output", "is_old", "name"], name="one_row_per_file"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.output}"


class DifferingHour(models.Model):
    """What differs in one hour of event time: differences are these, added up."""

    output = models.ForeignKey(ReplayOutput, on_delete=models.CASCADE, related_name="differing")
    hour_us = models.BigIntegerField()
    groups = models.JSONField()
    """[verdict, fields, rows, first µs, examples], a row per kind."""

    class Meta:
        ordering = ["hour_us"]
        constraints = [
            models.UniqueConstraint(fields=["output", "hour_us"], name="one_row_per_hour"),
        ]

    def __str__(self) -> str:
        return f"{self.output} at {self.hour_us}"


class Difference(models.Model):
    """Rows that differ in the same way."""

    output = models.ForeignKey(ReplayOutput, on_delete=models.CASCADE, related_name="differences")
    verdict = models.CharField(max_length=16)
    fields = models.JSONField(default=list)
    """Names of the columns that differ; none of rows that only one side has."""
    rows = models.BigIntegerField()
    first_seen = models.DateTimeField()
    """Event time of the first of them."""
    examples = models.JSONField(default=list)
    accepted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    accepted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["output", "-rows", "id"]

    def __str__(self) -> str:
        return f"{self.output}: {self.verdict} {', '.join(self.fields)}"


ENDED = (
    Replay.Status.FINISHED,
    Replay.Status.ABANDONED,
    Replay.Status.FAILED,
    Replay.Status.PROMOTED,
    Replay.Status.ROLLED_BACK,
)
"""Nothing of it runs beside the live job any more."""
HANDING_OVER = (Replay.Status.CUTTING_OVER, Replay.Status.ROLLING_BACK)
OPEN = tuple(status for status in Replay.Status if status not in (*ENDED, *HANDING_OVER))
