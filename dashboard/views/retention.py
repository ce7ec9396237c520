"""Schedules of savepoints, and the rules of which are kept."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import job_for, schedule_for
from controlplane.snapshots import schedule_actions
from controlplane.snapshots.catalogue import preview
from controlplane.snapshots.policy_actions import set_policy
from dashboard.answers import checked, said
from dashboard.savepoint_forms import PolicyForm, ScheduleForm
from dashboard.views.requests import UserRequest
from dashboard.views.savepoints import back


@login_required
@require_POST
def add_schedule(request: UserRequest, name: str) -> HttpResponse:
    """Take savepoints regularly."""
    job = job_for(request.user, name)
    form = ScheduleForm(request.POST)
    minutes = checked(form)["every_minutes"]
    schedule = schedule_actions.add_schedule(job, request.user, minutes, options=form.options())
    return said(request, f"A savepoint of {name} is taken {schedule.words}", back(name), move=True)


@login_required
@require_POST
def pause_schedule(request: UserRequest, schedule_id: int) -> HttpResponse:
    """Let a schedule rest, or go on."""
    schedule = schedule_for(request.user, schedule_id)
    enabled = not schedule.enabled
    schedule_actions.set_schedule_enabled(schedule, request.user, enabled=enabled)
    sentence = "The schedule goes on" if enabled else "The schedule rests"
    return said(request, sentence, back(schedule.job.name), move=True)


@login_required
@require_POST
def remove_schedule(request: UserRequest, schedule_id: int) -> HttpResponse:
    """End a schedule; the savepoints that it took stay."""
    schedule = schedule_for(request.user, schedule_id)
    schedule_actions.remove_schedule(schedule, request.user)
    return said(request, "Schedule removed", back(schedule.job.name), move=True)


@login_required
@require_safe
def dry_run(request: UserRequest, name: str) -> HttpResponse:
    """What rules that are not saved yet would do."""
    job = job_for(request.user, name)
    form = PolicyForm(request.GET)
    checked(form)
    found = preview(job, form.wish().rules(), timezone.now())
    return render(request, "savepoints/_preview.html", {"preview": found})


@login_required
@require_POST
def save_policy(request: UserRequest, name: str) -> HttpResponse:
    """Decide which savepoints are kept."""
    job = job_for(request.user, name)
    form = PolicyForm(request.POST)
    checked(form)
    set_policy(job, request.user, form.wish())
    return said(request, "The rules are saved", back(name), move=True)
