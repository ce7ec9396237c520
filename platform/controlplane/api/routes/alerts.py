"""Alerts: what fires, the rules that look, and who is told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.utils import timezone
from ninja import Query, Router, Status

from controlplane.access.lookup import (
    alert_for,
    alert_route_for,
    alert_rule_for,
    job_for,
    team_for,
    visible_jobs,
    visible_teams,
)
from controlplane.alerts import actions
from controlplane.alerts.models import Alert, AlertRule, Route
from controlplane.alerts.queries import rule_preview
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page, part
from controlplane.api.schema.alerts import (
    AlertOut,
    MuteIn,
    RouteIn,
    RouteMade,
    RouteOut,
    RuleAsked,
    RuleChange,
    RuleIn,
    RuleOut,
    RulePreview,
)

router = Router(tags=["alerts"])


@router.get("alerts", response=Page[AlertOut], summary="List alerts")
def list_alerts(
    request: ApiRequest,
    job: str = "",
    state: Literal["", "pending", "firing", "resolved"] = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Of the jobs that you see, newest first."""
    found = Alert.objects.select_related("rule", "job", "acknowledged_by")
    if job:
        found = found.filter(job=job_for(request.auth, job))
    else:
        found = found.filter(job__in=visible_jobs(request.auth))
    if state:
        found = found.filter(state=state)
    return page(found, list, limit, cursor, "-since", "-id")


@router.post("alerts/{alert_id}/acknowledge", response=AlertOut, summary="Acknowledge an alert")
def acknowledge(request: ApiRequest, alert_id: int) -> Alert:
    """You have it. Operator."""
    actions.acknowledge(alert_for(request.auth, alert_id), request.auth, timezone.now())
    return alert_for(request.auth, alert_id)


@router.post("alerts/{alert_id}/mute", response=AlertOut, summary="Mute an alert")
def mute(request: ApiRequest, alert_id: int, body: MuteIn) -> Alert:
    """Tell nobody of it for a while. Operator."""
    alert = alert_for(request.auth, alert_id)
    actions.mute(alert, request.auth, body.minutes, body.reason, timezone.now())
    return alert_for(request.auth, alert_id)


@router.get("alert-rules", response=Page[RuleOut], summary="List rules")
def list_rules(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Those of your teams."""
    found = AlertRule.objects.filter(team__in=visible_teams(request.auth))
    return page(found.select_related("team", "job"), list, limit, cursor, "id")


@router.get("alert-rules/preview", response=RulePreview, summary="When a rule would have fired")
def preview(
    request: ApiRequest,
    asked: Annotated[RuleAsked, Query()],
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Over what is kept of the last days, newest first; nothing is made."""
    user, given = request.auth, asked.dict(exclude={"team", "job"})
    job = job_for(user, asked.job) if asked.job else None
    found = rule_preview(user, team_for(user, asked.team), job, **given)
    head = {"days": found.days, "unknown": found.unknown}
    return head | part(found.firings, lambda one: (-one.from_ms, one.job), limit, cursor)


@router.post("alert-rules", response={201: RuleOut}, summary="Add a rule")
def add_rule(request: ApiRequest, body: RuleIn) -> Status[AlertRule]:
    """Look at something from now on. Operator."""
    team = team_for(request.auth, body.team)
    job = job_for(request.auth, body.job) if body.job else None
    rule = actions.add_rule(
        team,
        job,
        request.auth,
        measure=body.measure,
        threshold=body.threshold,
        for_seconds=body.for_seconds,
        severity=body.severity,
    )
    return Status(201, rule)


@router.patch("alert-rules/{rule_id}", response=RuleOut, summary="Change a rule")
def change_rule(request: ApiRequest, rule_id: int, body: RuleChange) -> AlertRule:
    """Let it rest, or look again. Operator."""
    rule, wanted = alert_rule_for(request.auth, rule_id), body.enabled
    return actions.set_rule_enabled(rule, request.auth, enabled=wanted, reason=body.reason)


@router.delete("alert-rules/{rule_id}", response={204: None}, summary="Remove a rule")
def remove_rule(request: ApiRequest, rule_id: int) -> Status[None]:
    """Look no more; its alerts go with it. Operator."""
    actions.remove_rule(alert_rule_for(request.auth, rule_id), request.auth)
    return Status(204, None)


@router.get("alert-routes", response=Page[RouteOut], summary="List who is told")
def list_routes(
    request: ApiRequest, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Those of your teams; of an address that may be a secret only the host."""
    found = Route.objects.filter(team__in=visible_teams(request.auth)).select_related("team")
    return page(found, list, limit, cursor, "id")


@router.post("alert-routes", response={201: RouteMade}, summary="Tell somebody")
def add_route(request: ApiRequest, body: RouteIn) -> Status[Route]:
    """Of a team's alerts, from now on; the secret of a webhook is told nowhere else. Admin."""
    team = team_for(request.auth, body.team)
    return Status(201, actions.add_route(team, request.auth, kind=body.kind, target=body.target))


@router.delete("alert-routes/{route_id}", response={204: None}, summary="Tell somebody no more")
def remove_route(request: ApiRequest, route_id: int) -> Status[None]:
    """What waits to be told them is not. Admin."""
    actions.remove_route(alert_route_for(request.auth, route_id), request.auth)
    return Status(204, None)
