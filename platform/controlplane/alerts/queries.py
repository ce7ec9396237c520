"""The page of alerts, read in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from controlplane.access.lookup import RANK, roles_of, visible_jobs, visible_teams
from controlplane.access.models import Role, Team
from controlplane.alerts.actions import check_about
from controlplane.alerts.measures import UNITS, Unit, shown
from controlplane.alerts.models import OPEN, Alert, AlertRule, Delivery, Route
from controlplane.alerts.preview import Preview, preview
from controlplane.jobs.models import Job
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.moments import epoch_ms

RECENT = 50
Measure = AlertRule.Measure


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert."""

    alert: Alert
    unit: Unit
    may_operate: bool

    @property
    def since_ms(self) -> int:
        """When the breach began."""
        return epoch_ms(self.alert.since)

    @property
    def value(self) -> float | None:
        """As its format takes it."""
        return shown(self.unit, self.alert.value)

    @property
    def path(self) -> str:
        """Where that stands in the topic `alerts`."""
        return f"{self.alert.job_id}.v{self.alert.pk}"

    @property
    def seen_ms(self) -> int | None:
        """When it was looked at."""
        return epoch_ms(self.alert.seen_at)

    @property
    def limit(self) -> float | None:
        """The threshold, likewise."""
        return shown(self.unit, self.alert.rule.threshold)


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule."""

    rule: AlertRule
    unit: Unit
    may_operate: bool

    @property
    def limit(self) -> float | None:
        """The threshold."""
        return shown(self.unit, self.rule.threshold)


@dataclass(frozen=True, slots=True)
class RouteLine:
    """One route, without what is secret in its address."""

    route: Route
    host: str
    last: str
    error: str
    may_admin: bool


@dataclass(frozen=True, slots=True)
class AlertsPage:
    """What fires, what fired, rules and routes."""

    open: tuple[AlertLine, ...]
    over: tuple[AlertLine, ...]
    rules: tuple[RuleLine, ...]
    routes: tuple[RouteLine, ...]
    teams: tuple[str, ...]
    """In which this person may make rules."""
    admin_teams: tuple[str, ...]
    """In which they may make routes."""
    jobs: tuple[str, ...]
    job: str
    """The only job that is shown; empty: all."""
    looked_ms: int | None
    """When rules were looked at last; None: not known."""

    @property
    def firing(self) -> int:
        """How many fire."""
        return sum(line.alert.state == Alert.State.FIRING for line in self.open)

    @property
    def measures(self) -> list[tuple[str, str, Unit]]:
        """What can be looked at."""
        return [(value, label, UNITS[Measure(value)]) for value, label in Measure.choices]


def alerts_page(user: User, job: str) -> AlertsPage:
    """Everything that this person may see; with `job`, of that one only."""
    roles, jobs = roles_of(user), visible_jobs(user)
    alerts = Alert.objects.filter(job__in=jobs.values("pk")).select_related(
        "rule__team", "job", "acknowledged_by"
    )
    if job:
        alerts = alerts.filter(job__name=job)
    unfinished = alerts.filter(state__in=OPEN).order_by("state", "rule__severity", "since")
    over = alerts.filter(state=Alert.State.RESOLVED).order_by("-resolved_at")[:RECENT]
    return AlertsPage(
        open=tuple(_line(one, roles) for one in unfinished),
        over=tuple(_line(one, roles) for one in over),
        rules=_rules(user, roles),
        routes=_routes(user, roles),
        teams=_teams(roles, Role.OPERATOR),
        admin_teams=_teams(roles, Role.ADMIN),
        jobs=tuple(jobs.order_by("name").values_list("name", flat=True).distinct()),
        job=job,
        looked_ms=latest(topics.ALERTS).get("sum", {}).get("at_ms"),
    )


def rule_preview(
    user: User,
    team: Team,
    job: Job | None,
    *,
    measure: str,
    threshold: float,
    for_seconds: int,
) -> Preview:
    """When a rule about this job, or about all of the team's, would have fired. Raises Refused."""
    check_about(team, job)
    jobs = [job] if job else list(visible_jobs(user).filter(team=team).order_by("name"))
    return preview(jobs, Measure(measure), threshold, for_seconds, timezone.now())


def _line(alert: Alert, roles: dict[str, Role]) -> AlertLine:
    unit = UNITS[Measure(alert.rule.measure)]
    return AlertLine(alert, unit, _may(roles, alert.rule.team.name, Role.OPERATOR))


def _rules(user: User, roles: dict[str, Role]) -> tuple[RuleLine, ...]:
    rules = AlertRule.objects.filter(team__in=visible_teams(user).values("pk"))
    return tuple(
        RuleLine(rule, UNITS[Measure(rule.measure)], _may(roles, rule.team.name, Role.OPERATOR))
        for rule in rules.select_related("team", "job", "created_by")
    )


def _routes(user: User, roles: dict[str, Role]) -> tuple[RouteLine, ...]:
    newest = Delivery.objects.filter(route=OuterRef("pk")).order_by("-id")
    routes = Route.objects.filter(team__in=visible_teams(user).values("pk")).annotate(
        last=Subquery(newest.values("state")[:1]), error=Subquery(newest.values("error")[:1])
    )
    return tuple(
        RouteLine(
            route,
            route.host,
            str(route.__dict__["last"] or ""),
            str(route.__dict__["error"] or ""),
            _may(roles, route.team.name, Role.ADMIN),
        )
        for route in routes.select_related("team")
    )


def _teams(roles: dict[str, Role], role: Role) -> tuple[str, ...]:
    return tuple(sorted(name for name in roles if _may(roles, name, role)))


def _may(roles: dict[str, Role], team: str, role: Role) -> bool:
    return team in roles and RANK[roles[team]] >= RANK[role]
