"""Rules, alerts, routes and deliveries.

    Team ──< AlertRule ──< Alert       one per job and time that a rule found something
     └────< Route  ──────< Delivery    one per alert, route and news: firing, resolved

Guarantee  of one rule and job at most one alert is open, and of one alert, route and news there is
           one delivery: the database enforces both. `Alert.state` changes only in `evaluation.py`.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q


class AlertRule(models.Model):
    """When something is worth an alert: of one job, or of every job of a team."""

    class Measure(models.TextChoices):
        """What is looked at; `measures.py` says in which unit."""

        CHECKPOINT_AGE = "checkpoint_age", "Age of the last checkpoint"
        CHECKPOINTS_FAILED = "checkpoints_failed", "Checkpoints failed in a row"
        WATERMARK_DELAY = "watermark_delay", "Watermark delay"
        RESTARTS = "restarts", "Restarts in the last hour"
        BACKPRESSURE = "backpressure", "Backpressure"
        SAVEPOINT_AGE = "savepoint_age", "Age of the last savepoint"
        REPLAY_STALLED = "replay_stalled", "Replay stands still"
        NOT_RUNNING = "not_running", "Wanted and not running"
        RECOVERY_POINT = "recovery_point", "Recovery point beyond its objective"
        SAVEPOINT_UNREADABLE = "savepoint_unreadable", "Savepoints damaged or gone"
        POINTS_DROPPED = "points_dropped", "Points of series dropped in the last hour"

    class Severity(models.TextChoices):
        """How much it matters."""

        WARN = "warn", "Warning"
        CRIT = "crit", "Critical"

    team = models.ForeignKey("access.Team", on_delete=models.CASCADE, related_name="alert_rules")
    job = models.ForeignKey(
        "jobs.Job", null=True, blank=True, on_delete=models.CASCADE, related_name="alert_rules"
    )
    """Null: every job of the team."""
    measure = models.CharField(max_length=24, choices=Measure.choices)
    threshold = models.FloatField()
    """It is breached by this value and more."""
    for_seconds = models.PositiveIntegerField(default=0)
    """How long it must be breached before it fires, and be well before it is resolved."""
    severity = models.CharField(max_length=8, choices=Severity.choices, default=Severity.WARN)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["team__name", "measure", "id"]

    def __str__(self) -> str:
        whose = self.job.name if self.job else f"jobs of {self.team.name}"
        return f"{self.get_measure_display().lower()} of {whose}"


class Alert(models.Model):
    """Something that a rule found."""

    class State(models.TextChoices):
        """How it stands."""

        PENDING = "pending", "Pending"
        FIRING = "firing", "Firing"
        RESOLVED = "resolved", "Resolved"

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="alerts")
    state = models.CharField(max_length=12, choices=State.choices, default=State.PENDING)
    since = models.DateTimeField()
    """When the breach began."""
    fired_at = models.DateTimeField(null=True, blank=True)
    well_since = models.DateTimeField(null=True, blank=True)
    """Since when a firing one is not breached any more."""
    resolved_at = models.DateTimeField(null=True, blank=True)
    value = models.FloatField(null=True, blank=True)
    """The latest value; null when it is not known just now."""
    seen_at = models.DateTimeField()
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    muted_until = models.DateTimeField(null=True, blank=True)
    mute_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-since", "-id"]
        indexes = [models.Index(fields=["state", "-since"]), models.Index(fields=["job", "-since"])]
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "job"],
                condition=Q(state__in=["pending", "firing"]),
                name="one_open_alert_per_rule_and_job",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule} ({self.state})"


OPEN = (Alert.State.PENDING, Alert.State.FIRING)


class Route(models.Model):
    """Where a team is told of its alerts."""

    class Kind(models.TextChoices):
        """How."""

        WEBHOOK = "webhook", "Webhook"
        SLACK = "slack", "Slack webhook"
        EMAIL = "email", "Email"

    team = models.ForeignKey("access.Team", on_delete=models.CASCADE, related_name="alert_routes")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    target = models.CharField(max_length=500)
    """An https address, or an email address."""
    secret = models.CharField(max_length=64)
    """With which a webhook's body is signed; shown once."""
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["team__name", "kind", "id"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.team.name}"

    @property
    def host(self) -> str:
        """The target without what may be a secret: a Slack address is one."""
        return self.target if self.kind == Route.Kind.EMAIL else self.target.split("/")[2]


class Delivery(models.Model):
    """One piece of news to one route."""

    class State(models.TextChoices):
        """How it stands."""

        WAITING = "waiting", "Waiting"
        SENT = "sent", "Sent"
        FAILED = "failed", "Given up"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="deliveries")
    news = models.CharField(max_length=12)
    """firing or resolved."""
    state = models.CharField(max_length=12, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    error = models.CharField(max_length=300, blank=True)
    """Why the last attempt failed."""
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "due_at"])]
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "route", "news"], name="one_delivery_per_news_and_route"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.news} to {self.route} ({self.state})"
