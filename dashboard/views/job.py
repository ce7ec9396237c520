"""A job's first page: how it is, its graph, what it writes; and starting and ending it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import job_for, savepoint_for, version_for
from controlplane.jobs import actions
from controlplane.jobs.queries import job_frame, job_overview
from controlplane.metrics.queries import output_choices
from dashboard.answers import checked, said, started
from dashboard.forms import ControlForm, StartForm, StopForm
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
    key, reason = asked["idempotency_key"], asked["reason"]
    if job_frame(job, request.user).is_running:
        mode, consent = asked["mode"] or "savepoint", asked["consent"]
        operation = actions.upgrade(
            job, request.user, version, savepoint, key, mode=mode, consent=consent, reason=reason
        )
    else:
        operation = actions.deploy(job, request.user, version, savepoint, key, reason=reason)
    return started(request, operation, reverse("dashboard:job", args=[name]))


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
