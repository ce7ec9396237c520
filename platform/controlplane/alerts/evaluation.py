"""One pass over all rules: what is breached, for how long, and who must hear of it.

1. Every rule and the jobs that it is about; every measure of those jobs.
2. Each rule and job: one step of `machine.py`, from the alert that is open in the database.
3. What changed is written; what fires, and is not muted, gets a delivery per route of its team, and
   so does what is resolved after that was told.

Guarantee  all state is in the database: a pass that is killed is rolled back and the next one makes
           it; two passes at once do not double anything. An alert whose mute ends is told then.
Cost       a fixed number of queries besides one for each alert that changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q

from controlplane.alerts import live
from controlplane.alerts.machine import Life, Phase, judge, step
from controlplane.alerts.measures import Values, measure_all, measure_everywhere
from controlplane.alerts.models import OPEN, Alert, AlertRule, Delivery, Route
from controlplane.jobs.models import Job

FIRING, RESOLVED = "firing", "resolved"
NEWS_FOR = timedelta(hours=1)
"""What was resolved longer ago is no news."""
Key = tuple[int, int]
"""Rule and job, or alert and route."""


def evaluate(now: datetime) -> None:
    """Make one pass."""
    rules = list(AlertRule.objects.filter(enabled=True))
    jobs = _jobs_of(rules)
    values = measure_all({job_id for ids in jobs.values() for job_id in ids}, now)
    everywhere = measure_everywhere({rule.measure for rule in rules}, now)
    with transaction.atomic():
        unfinished = Alert.objects.filter(state__in=OPEN).select_related("rule")
        known: dict[Key, Alert] = {(one.rule_id, one.job_id): one for one in unfinished}
        steady: list[Alert] = []
        for rule in rules:
            for job_id in jobs[rule.pk]:
                alert = known.pop((rule.pk, job_id), None)
                steady += _take_in(rule, job_id, alert, {**values[job_id], **everywhere}, now)
        Alert.objects.bulk_update(steady, ["value", "seen_at"], batch_size=200)
        for left in known.values():  # the rule is off, or about other jobs now
            _end(left, now)
        _tell(now)
    live.tell_all(now)


def _jobs_of(rules: Iterable[AlertRule]) -> dict[int, list[int]]:
    """The jobs that each rule is about."""
    by_team: dict[int, list[int]] = {}
    teams = {rule.team_id for rule in rules}
    for job_id, team_id in Job.objects.filter(team__in=teams).values_list("pk", "team_id"):
        by_team.setdefault(team_id, []).append(job_id)
    return {
        rule.pk: [
            job_id for job_id in by_team.get(rule.team_id, []) if rule.job_id in (None, job_id)
        ]
        for rule in rules
    }


def _take_in(
    rule: AlertRule, job_id: int, alert: Alert | None, values: Values, now: datetime
) -> list[Alert]:
    """One step; the alert when nothing but its value changed."""
    value = values.get(rule.measure)
    before = life_of(alert)
    hold = timedelta(seconds=rule.for_seconds)
    after = step(before, judge(value, rule.threshold), now, hold)
    if after is None:
        if alert is not None:
            alert.delete()
        return []
    if alert is None:
        _begin(rule, job_id, after, value, now)
        return []
    alert.value, alert.seen_at = value, now
    if after == before:
        return [alert]
    _write(alert, after)
    return []


def life_of(alert: Alert | None) -> Life | None:
    """What the machine knows of an alert."""
    if alert is None:
        return None
    return Life(
        Phase(alert.state), alert.since, alert.fired_at, alert.well_since, alert.resolved_at
    )


def _begin(rule: AlertRule, job_id: int, life: Life, value: float | None, now: datetime) -> None:
    alert = Alert(rule=rule, job_id=job_id, value=value, since=life.since, seen_at=now)
    try:
        with transaction.atomic():
            _write(alert, life)
    except IntegrityError:
        return  # another pass began it just now


def _write(alert: Alert, life: Life) -> None:
    alert.state = Alert.State(life.phase.value)
    alert.fired_at, alert.well_since = life.fired_at, life.well_since
    alert.resolved_at = life.resolved_at
    alert.save()


def _end(alert: Alert, now: datetime) -> None:
    """Nothing looks any more: what was pending is gone, what fired is over."""
    if alert.state == Alert.State.PENDING:
        alert.delete()
        return
    alert.state, alert.resolved_at = Alert.State.RESOLVED, now
    alert.save()


def _tell(now: datetime) -> None:
    """Make the deliveries that are missing."""
    routes: dict[int, list[Route]] = {}
    for route in Route.objects.all():
        routes.setdefault(route.team_id, []).append(route)
    loud = Q(muted_until=None) | Q(muted_until__lte=now)
    firing = Alert.objects.filter(loud, state=Alert.State.FIRING)
    # Only who was told that it fires is told that it is over.
    over = Alert.objects.filter(state=Alert.State.RESOLVED, resolved_at__gte=now - NEWS_FOR)
    alerts = [*firing.select_related("rule"), *over.select_related("rule")]
    told = _told(alerts)
    Delivery.objects.bulk_create(
        [
            Delivery(alert=alert, route=route, news=news, due_at=now)
            for alert in alerts
            for route in routes.get(alert.rule.team_id, [])
            if (news := _missing(alert, route, told.get((alert.pk, route.pk), set())))
        ],
        ignore_conflicts=True,
    )


def _missing(alert: Alert, route: Route, told: set[str]) -> str:
    """What the route is to be told of; empty when nothing."""
    if alert.state == Alert.State.FIRING:
        # A new route does not hear of what fires since long.
        is_news = alert.fired_at is not None and alert.fired_at >= route.created_at
        return FIRING if is_news and FIRING not in told else ""
    return RESOLVED if FIRING in told and RESOLVED not in told else ""


def _told(alerts: Iterable[Alert]) -> Mapping[Key, set[str]]:
    """Alert and route to the news that are under way or told."""
    found: dict[Key, set[str]] = {}
    rows = Delivery.objects.filter(alert__in=[alert.pk for alert in alerts])
    for alert, route, news in rows.values_list("alert", "route", "news"):
        found.setdefault((alert, route), set()).add(news)
    return found
