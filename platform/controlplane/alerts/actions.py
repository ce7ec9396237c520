"""What people do about alerts; each is audited."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from controlplane.access.errors import conflict, invalid
from controlplane.access.lookup import require_in
from controlplane.access.models import Role, Team
from controlplane.alerts import live
from controlplane.alerts.addresses import Forbidden, checked_url, private_allowed
from controlplane.alerts.measures import EVERYWHERE, ONE_JOB
from controlplane.alerts.models import OPEN, Alert, AlertRule, Route
from controlplane.audit.record import record
from controlplane.jobs.models import Job

MOST_SECONDS = 7 * 86_400
MOST_MUTE = timedelta(days=30)


@transaction.atomic
def add_rule(
    team: Team,
    job: Job | None,
    actor: User,
    *,
    measure: str,
    threshold: float,
    for_seconds: int,
    severity: str,
) -> AlertRule:
    """Look at something from now on. Raises Refused."""
    require_in(actor, team, Role.OPERATOR)
    check_about(team, job)
    if job is None and measure in EVERYWHERE:
        msg = f"{ONE_JOB}, so that it is told once"
        raise invalid(msg, "job")
    rule = AlertRule.objects.create(
        team=team,
        job=job,
        measure=measure,
        threshold=threshold,
        for_seconds=for_seconds,
        severity=severity,
        created_by=actor,
    )
    record(actor, "alert_rule.create", str(rule), job=job, after=_of(rule))
    return rule


def check_about(team: Team, job: Job | None) -> None:
    """A rule of a team is about that team's jobs. Raises Refused."""
    if job is not None and job.team_id != team.pk:
        msg = f"job {job.name} is not of team {team.name}: choose one of its jobs"
        raise invalid(msg, "job")


@transaction.atomic
def set_rule_enabled(rule: AlertRule, actor: User, *, enabled: bool, reason: str = "") -> AlertRule:
    """Let it rest, or look again; at rest what fires by it is over. Raises Refused."""
    require_in(actor, rule.team, Role.OPERATOR)
    if AlertRule.objects.filter(pk=rule.pk).exclude(enabled=enabled).update(enabled=enabled):
        action = "alert_rule.resume" if enabled else "alert_rule.pause"
        before, after = {"enabled": not enabled}, {"enabled": enabled}
        record(actor, action, str(rule), job=rule.job, reason=reason, before=before, after=after)
    rule.enabled = enabled
    return rule


@transaction.atomic
def remove_rule(rule: AlertRule, actor: User) -> None:
    """Look no more; its alerts go with it. Raises Refused."""
    require_in(actor, rule.team, Role.OPERATOR)
    record(actor, "alert_rule.remove", str(rule), job=rule.job, before=_of(rule))
    jobs = rule.alerts.values_list("job", flat=True).distinct()
    live.tell_on_commit(*jobs)
    rule.delete()


@transaction.atomic
def acknowledge(alert: Alert, actor: User, now: datetime) -> None:
    """Somebody has it. Raises Refused."""
    require_in(actor, alert.rule.team, Role.OPERATOR)
    mine = Alert.objects.filter(pk=alert.pk, state__in=OPEN, acknowledged_at=None)
    if not mine.update(acknowledged_by=actor, acknowledged_at=now):
        msg = "this alert is over, or somebody has it already: reload the page"
        raise conflict(msg)
    record(actor, "alert.acknowledge", str(alert.rule), job=alert.job)
    live.tell_on_commit(alert.job_id)


@transaction.atomic
def mute(alert: Alert, actor: User, minutes: int, reason: str, now: datetime) -> None:
    """Tell nobody of it for so long. Raises Refused."""
    require_in(actor, alert.rule.team, Role.OPERATOR)
    until = now + min(MOST_MUTE, timedelta(minutes=minutes))
    mine = Alert.objects.filter(pk=alert.pk, state__in=OPEN)
    if not mine.update(muted_until=until, mute_reason=reason[:300]):
        msg = "this alert is over: there is nothing to mute"
        raise conflict(msg)
    after = {"until": until.isoformat(timespec="seconds")}
    record(actor, "alert.mute", str(alert.rule), job=alert.job, reason=reason, after=after)
    live.tell_on_commit(alert.job_id)


@transaction.atomic
def add_route(team: Team, actor: User, *, kind: str, target: str) -> Route:
    """Tell somebody of the team's alerts from now on. Raises Refused."""
    require_in(actor, team, Role.ADMIN)
    _check_target(kind, target)
    route = Route.objects.create(
        team=team,
        kind=kind,
        target=target,
        secret=secrets.token_urlsafe(32),
        created_by=actor,
    )
    record(actor, "alert_route.create", str(route), after={"kind": kind, "target": route.host})
    return route


@transaction.atomic
def remove_route(route: Route, actor: User) -> None:
    """Tell them no more. Raises Refused."""
    require_in(actor, route.team, Role.ADMIN)
    record(actor, "alert_route.remove", str(route), before={"target": route.host})
    route.delete()


def _check_target(kind: str, target: str) -> None:
    try:
        if kind == Route.Kind.EMAIL:
            validate_email(target)
        else:
            checked_url(target, private=private_allowed())
    except ValidationError:
        msg = f"email address cannot be used: got {target[:80]!r}; give one like ops@example.org"
        raise invalid(msg, "target") from None
    except Forbidden as forbidden:
        raise invalid(str(forbidden), "target") from None


def _of(rule: AlertRule) -> dict[str, object]:
    return {
        "measure": rule.measure,
        "threshold": rule.threshold,
        "for_seconds": rule.for_seconds,
        "severity": rule.severity,
    }
