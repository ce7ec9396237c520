"""Alerts, the rules that look, and who is told."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from controlplane.alerts.actions import MOST_SECONDS
from controlplane.alerts.models import Alert, AlertRule, Route
from controlplane.api.paging import Page
from controlplane.api.schema.jobs import Reason


class RuleAsked(Schema):
    """A rule: from which value on, and for how long, something is worth an alert."""

    team: str = Field(max_length=64)
    job: str = Field("", max_length=64, description="none: every job of the team")
    measure: AlertRule.Measure
    threshold: float = Field(ge=0)
    for_seconds: int = Field(0, ge=0, le=MOST_SECONDS)


class RuleIn(RuleAsked):
    """A rule that is to be watched."""

    severity: AlertRule.Severity = AlertRule.Severity.WARN


class FiringOut(Schema):
    """One time that a rule would have fired."""

    job: str
    from_ms: int
    until_ms: int | None = Field(description="null: it would fire now")


class RulePreview(Page[FiringOut]):
    """When a rule would have fired."""

    days: int = Field(description="that were looked at")
    unknown: str = Field(description="why nothing can be said")


class RuleChange(Reason):
    """Whether it looks."""

    enabled: bool


class RuleOut(Schema):
    """A rule that is watched."""

    id: int
    team: str
    job: str | None
    measure: str
    threshold: float
    for_seconds: int
    severity: str
    enabled: bool

    @staticmethod
    def resolve_team(rule: AlertRule) -> str:
        """Its name."""
        return rule.team.name

    @staticmethod
    def resolve_job(rule: AlertRule) -> str | None:
        """Its name."""
        return rule.job.name if rule.job else None


class AlertOut(Schema):
    """Something that a rule found."""

    id: int
    rule: int = Field(alias="rule_id")
    measure: str
    severity: str
    job: str
    state: str = Field(description="pending, firing or resolved")
    since: datetime
    fired_at: datetime | None
    resolved_at: datetime | None
    value: float | None = Field(description="null: not known just now")
    seen_at: datetime
    acknowledged_by: str | None
    acknowledged_at: datetime | None
    muted_until: datetime | None
    mute_reason: str

    @staticmethod
    def resolve_job(alert: Alert) -> str:
        """Its name."""
        return alert.job.name

    @staticmethod
    def resolve_measure(alert: Alert) -> str:
        """What its rule looks at."""
        return alert.rule.measure

    @staticmethod
    def resolve_severity(alert: Alert) -> str:
        """How much it matters."""
        return alert.rule.severity

    @staticmethod
    def resolve_acknowledged_by(alert: Alert) -> str | None:
        """Their name."""
        return alert.acknowledged_by.get_username() if alert.acknowledged_by else None


class MuteIn(Schema):
    """For how long, and why."""

    minutes: int = Field(ge=1, le=43_200)
    reason: str = Field(min_length=1, max_length=300)


class RouteIn(Schema):
    """Where a team is told of its alerts."""

    team: str = Field(max_length=64)
    kind: Route.Kind
    target: str = Field(max_length=500, description="an https address, or an email address")


class RouteOut(Schema):
    """Where a team is told."""

    id: int
    team: str
    kind: str
    host: str = Field(description="the target without what may be a secret in it")

    @staticmethod
    def resolve_team(route: Route) -> str:
        """Its name."""
        return route.team.name


class RouteMade(RouteOut):
    """A new one."""

    secret: str = Field(description="with which the body of a webhook is signed")
