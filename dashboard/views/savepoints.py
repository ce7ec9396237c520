"""Savepoints: of one job with its schedules and rules, and of all jobs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import job_for, operable_jobs, stray_for, visible_jobs
from controlplane.jobs.queries import job_frame
from controlplane.snapshots import actions, strays
from controlplane.snapshots.axis import axis
from controlplane.snapshots.catalogue import Wanted, catalogue, storage
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.policy_actions import policy_of, rule_fields
from controlplane.snapshots.recovery_point import recovery_points
from controlplane.snapshots.schedule_lines import schedule_lines
from dashboard.answers import checked, said, started
from dashboard.savepoint_forms import FilterForm, ImportForm, SavepointForm
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest

HEALTHS = {
    "whole": "Verified",
    "unverified": "Not verified",
    "damaged": "Damaged",
    "unreadable": "Cannot be read",
    "missing": "Files are gone",
}


def back(name: str) -> str:
    """The page of a job's savepoints."""
    return reverse("dashboard:savepoints", args=[name])


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """The axis, the catalogue, and what is kept of it."""
    job, now = job_for(request.user, name), timezone.now()
    wanted, policy = _wanted(request), policy_of(job)
    found = catalogue([job], now, wanted)
    by_event_time = request.GET.get("axis") == "event"
    return job_page(
        request,
        "jobs/savepoints.html",
        "savepoints",
        job,
        job_frame(job, request.user),
        found=found,
        wanted=wanted,
        axis=axis(job, found.rows, now, by_event_time=by_event_time),
        schedules=schedule_lines(job),
        policy=policy,
        policy_rules=rule_fields(policy),
        preview=found.preview,
        storage=storage([job]),
        recovery=recovery_points([job], now)[job.pk],
        **_choices(),
    )


@login_required
@require_safe
def every(request: UserRequest) -> HttpResponse:
    """Savepoints of every job that this person may see."""
    jobs, now = list(visible_jobs(request.user).distinct()), timezone.now()
    points, wanted = recovery_points(jobs, now), _wanted(request)
    return render(
        request,
        "savepoints/all.html",
        {
            "section": "savepoints",
            "found": catalogue(jobs, now, wanted),
            "wanted": wanted,
            "recovery": [(job, points[job.pk]) for job in jobs if points[job.pk].objective],
            "storage": storage(jobs),
            "operable": operable_jobs(request.user),
            **_choices(),
        },
    )


@login_required
@require_POST
def take(request: UserRequest, name: str) -> HttpResponse:
    """Take a savepoint now."""
    job = job_for(request.user, name)
    asked = checked(SavepointForm(request.POST))
    operation = actions.request_savepoint(
        job, request.user, label=asked["label"], idempotency_key=asked["idempotency_key"]
    )
    return started(request, operation, back(name))


@login_required
@require_POST
def import_(request: UserRequest, name: str) -> HttpResponse:
    """Take a folder into the catalogue."""
    job = job_for(request.user, name)
    asked = checked(ImportForm(request.POST))
    operation = actions.import_savepoint(
        job, request.user, asked["path"], asked["label"], asked["idempotency_key"]
    )
    return started(request, operation, back(name))


@login_required
@require_POST
def scan(request: UserRequest, name: str) -> HttpResponse:
    """Compare the catalogue with what is stored, now."""
    job = job_for(request.user, name)
    found = strays.rescan(job, request.user)
    sentence = found.problem or f"{found.folders} folders were compared with the catalogue"
    return said(request, sentence, back(name), move=True)


@login_required
@require_POST
def clear(request: UserRequest, stray_id: int) -> HttpResponse:
    """Remove what is left of a savepoint that no row is about."""
    stray = stray_for(request.user, stray_id)
    name = stray.job.name if stray.job else ""
    strays.clear_stray(stray, request.user)
    return said(request, "The files are removed", back(name), move=True)


def _wanted(request: UserRequest) -> Wanted:
    asked = checked(FilterForm(request.GET))
    return Wanted(asked["q"], asked["origin"], asked["health"])


def _choices() -> dict[str, Any]:
    return {"origins": Savepoint.Origin.choices, "healths": HEALTHS.items()}
