"""Savepoints of a job: the catalogue, taking one, schedules, and importing a folder."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import job_for, schedule_for
from controlplane.jobs.queries import job_frame
from controlplane.snapshots import actions, schedule_actions
from controlplane.snapshots.queries import savepoint_rows, schedules
from dashboard.answers import checked, said, started
from dashboard.forms import ImportForm, SavepointForm, ScheduleForm
from dashboard.views.requests import UserRequest


def _back(name: str) -> str:
    return reverse("dashboard:savepoints", args=[name])


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """The catalogue and its schedules."""
    job = job_for(request.user, name)
    return render(
        request,
        "jobs/savepoints.html",
        {
            "section": "jobs",
            "tab": "savepoints",
            "job": job,
            "frame": job_frame(job, request.user),
            "rows": savepoint_rows(job),
            "schedules": schedules(job),
            "page_data": {"job": job.pk},
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
    return started(request, operation, _back(name))


@login_required
@require_POST
def import_(request: UserRequest, name: str) -> HttpResponse:
    """Take a folder into the catalogue."""
    job = job_for(request.user, name)
    asked = checked(ImportForm(request.POST))
    operation = actions.import_savepoint(
        job, request.user, asked["path"], asked["label"], asked["idempotency_key"]
    )
    return started(request, operation, _back(name))


@login_required
@require_POST
def add_schedule(request: UserRequest, name: str) -> HttpResponse:
    """Take savepoints every so many minutes."""
    job = job_for(request.user, name)
    minutes = checked(ScheduleForm(request.POST))["every_minutes"]
    schedule_actions.add_schedule(job, request.user, every_minutes=minutes)
    sentence = f"A savepoint of {job.name} is taken every {minutes:g} min"
    return said(request, sentence, _back(name), move=True)


@login_required
@require_POST
def remove_schedule(request: UserRequest, schedule_id: int) -> HttpResponse:
    """End a schedule; the savepoints that it took stay."""
    schedule = schedule_for(request.user, schedule_id)
    schedule_actions.remove_schedule(schedule, request.user)
    return said(request, "Schedule removed", _back(schedule.job.name), move=True)
