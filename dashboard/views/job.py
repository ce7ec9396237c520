"""A job's first page: how it is, its graph, what it writes; and starting and ending it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import job_for, require, savepoint_for, version_for
from controlplane.access.models import Role
from controlplane.jobs import actions
from controlplane.jobs.health import live_run
from controlplane.jobs.queries import job_frame, job_overview
from controlplane.metrics.queries import output_choices
from controlplane.operations.steps.rows import STATELESS
from controlplane.replay.wizard import restore_at_start
from controlplane.snapshots.queries import newest_of
from dashboard.answers import checked, said, started
from dashboard.forms import CheckForm, ControlForm, StartForm, StopForm, agreed
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """The overview."""
    job = job_for(request.user, name)
    frame = job_frame(job, request.user)
    return job_page(
        request,
        "jobs/overview.html",
        "overview",
        job,
        frame,
        overview=job_overview(job, frame.run),
        choices=output_choices(job),
    )


@login_required
@require_POST
def start(request: UserRequest, name: str) -> HttpResponse:
    """Start a stopped job, or put another version in the place of the running one."""
    job = job_for(request.user, name)
    asked = checked(StartForm(request.POST))
    version = version_for(job, asked["version"])
    savepoint = savepoint_for(request.user, asked["savepoint"]) if asked["savepoint"] else None
    wish: dict[str, Any] = {"idempotency_key": asked["idempotency_key"], "reason": asked["reason"]}
    wish |= {"drop": agreed(request.POST, "drop"), "accept_missing": agreed(request.POST, "accept")}
    if job_frame(job, request.user).is_running:
        wish |= {"mode": asked["mode"] or "savepoint", "consent": asked["consent"]}
        operation = actions.upgrade(job, request.user, version, savepoint, **wish)
    else:
        operation = actions.deploy(job, request.user, version, savepoint, **wish)
    return started(request, operation, reverse("dashboard:job", args=[name]))


@login_required
@require_safe
def start_check(request: UserRequest, name: str) -> HttpResponse:
    """What that would restore, and what somebody has to agree to; the engine is asked."""
    job = job_for(request.user, name)
    require(request.user, job, Role.OPERATOR)
    asked = checked(CheckForm(request.GET))
    version, run = version_for(job, asked["version"]), live_run(job)
    savepoint = savepoint_for(request.user, asked["savepoint"]) if asked["savepoint"] else None
    if savepoint is None and run is not None:
        savepoint = newest_of(run)
    empty = asked["mode"] == STATELESS or (run is None and savepoint is None)
    restore = None if empty else restore_at_start(job, version, savepoint)
    found = {"restore": restore, "empty": empty, "savepoint": savepoint, "version": version}
    return render(request, "jobs/_start_check.html", found)


@login_required
@require_POST
def stop(request: UserRequest, name: str) -> HttpResponse:
    """End a job: with a savepoint, drained, or at once."""
    job = job_for(request.user, name)
    asked = checked(StopForm(request.POST, name=job.name))
    key = asked["idempotency_key"]
    if asked["how"] == "cancel":
        operation = actions.cancel(job, request.user, idempotency_key=key)
    else:
        drain = asked["how"] == "drain"
        operation = actions.stop(job, request.user, drain=drain, idempotency_key=key)
    return started(request, operation, reverse("dashboard:job", args=[name]))


@login_required
@require_POST
def control(request: UserRequest, name: str) -> HttpResponse:
    """Send one line to the job's control stream."""
    job = job_for(request.user, name)
    asked = checked(ControlForm(request.POST))
    line = f"{asked['key']} {asked['value']:g}"
    actions.send_control(job, request.user, line)
    return said(request, f"Sent “{line}”", reverse("dashboard:job", args=[name]))
