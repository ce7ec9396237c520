"""Alerts: what fires, the rules that look, and who is told."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import (
    alert_for,
    alert_route_for,
    alert_rule_for,
    job_for,
    team_for,
)
from controlplane.access.models import Team
from controlplane.alerts import actions
from controlplane.alerts.queries import alerts_page, rule_preview
from controlplane.jobs.models import Job
from dashboard.alert_forms import MuteForm, RouteForm, RuleForm
from dashboard.answers import checked, said
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """What fires, what fired, rules and routes."""
    context = {"section": "alerts", "page": alerts_page(request.user, request.GET.get("job", ""))}
    return render(request, "alerts/list.html", context)


@login_required
@require_safe
def preview(request: UserRequest) -> HttpResponse:
    """When a rule would have fired: a fragment that the form asks for on every change."""
    asked = checked(RuleForm(request.GET))
    found = rule_preview(
        request.user,
        *_about(request, asked),
        measure=asked["measure"],
        threshold=asked["threshold"],
        for_seconds=asked["for_seconds"] or 0,
    )
    return render(request, "alerts/_preview.html", {"preview": found})


@login_required
@require_POST
def add_rule(request: UserRequest) -> HttpResponse:
    """Look at something from now on."""
    asked = checked(RuleForm(request.POST))
    team, job = _about(request, asked)
    rule = actions.add_rule(
        team,
        job,
        request.user,
        measure=asked["measure"],
        threshold=asked["threshold"],
        for_seconds=asked["for_seconds"] or 0,
        severity=asked["severity"],
    )
    return _said(request, f"The {rule} is watched")


@login_required
@require_POST
def pause_rule(request: UserRequest, rule_id: int) -> HttpResponse:
    """Let it rest, or look again."""
    rule = alert_rule_for(request.user, rule_id)
    actions.set_rule_enabled(rule, request.user, enabled=not rule.enabled)
    return _said(request, f"The {rule} is watched" if rule.enabled else f"The {rule} rests")


@login_required
@require_POST
def remove_rule(request: UserRequest, rule_id: int) -> HttpResponse:
    """Look no more."""
    rule = alert_rule_for(request.user, rule_id)
    actions.remove_rule(rule, request.user)
    return _said(request, "Rule removed")


@login_required
@require_POST
def acknowledge(request: UserRequest, alert_id: int) -> HttpResponse:
    """Somebody has it."""
    actions.acknowledge(alert_for(request.user, alert_id), request.user, timezone.now())
    return _said(request, "The alert is yours")


@login_required
@require_POST
def mute(request: UserRequest, alert_id: int) -> HttpResponse:
    """Tell nobody of it for a while."""
    alert = alert_for(request.user, alert_id)
    asked = checked(MuteForm(request.POST))
    actions.mute(alert, request.user, asked["minutes"], asked["reason"], timezone.now())
    return _said(request, f"Nobody is told of it for {asked['minutes']} min")


@never_cache
@login_required
@require_POST
def add_route(request: UserRequest) -> HttpResponse:
    """Tell somebody from now on; a webhook's secret is on this page and never again."""
    asked = checked(RouteForm(request.POST))
    team = team_for(request.user, asked["team"])
    route = actions.add_route(team, request.user, kind=asked["kind"], target=asked["target"])
    return render(request, "alerts/route.html", {"section": "alerts", "route": route})


@login_required
@require_POST
def remove_route(request: UserRequest, route_id: int) -> HttpResponse:
    """Tell them no more."""
    actions.remove_route(alert_route_for(request.user, route_id), request.user)
    return _said(request, "Route removed")


def _about(request: UserRequest, asked: dict[str, Any]) -> tuple[Team, Job | None]:
    """Team and job of a rule. Raises Refused."""
    team = team_for(request.user, asked["team"])
    job = job_for(request.user, asked["job"]) if asked["job"] else None
    return team, job


def _said(request: UserRequest, sentence: str) -> HttpResponse:
    return said(request, sentence, reverse("dashboard:alerts"), move=True)
