"""Replays: the list, and following one until it has caught up; `replay_wizard.py` plans one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import job_for, replay_for
from controlplane.jobs.queries import job_frame
from controlplane.metrics.queries import output_choices
from controlplane.replay import actions
from controlplane.replay.compared import comparison_of
from controlplane.replay.cutting import proposed
from controlplane.replay.pausing import expected_pause
from controlplane.replay.queries import replay_lines, replay_page
from controlplane.replay.readiness import promotion, rollback
from dashboard.answers import checked, started
from dashboard.forms import AbandonForm
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Every replay that this person may see."""
    lines = replay_lines(request.user)
    return render(request, "replays/list.html", {"section": "replays", "lines": lines})


@login_required
@require_safe
def of_job(request: UserRequest, name: str) -> HttpResponse:
    """The replays of one job."""
    job = job_for(request.user, name)
    return job_page(
        request,
        "jobs/replays.html",
        "replays",
        job,
        job_frame(job, request.user),
        lines=replay_lines(request.user, job),
    )


@login_required
@require_safe
def one(request: UserRequest, replay_id: int) -> HttpResponse:
    """One replay."""
    replay = replay_for(request.user, replay_id)
    comparison = comparison_of(replay)
    return render(
        request,
        "replays/one.html",
        {
            "section": "replays",
            "page": replay_page(replay, comparison),
            "comparison": comparison,
            "cut": proposed(replay),
            "promotion": promotion(replay, comparison),
            "rollback": rollback(replay),
            "pause": expected_pause(replay),
            "replay": replay,
            "frame": job_frame(replay.job, request.user),
            "choices": output_choices(replay.job),
            "page_data": {"replay": replay.pk},
        },
    )


@login_required
@require_POST
def abandon(request: UserRequest, replay_id: int) -> HttpResponse:
    """End a replay; the live job is not touched."""
    replay = replay_for(request.user, replay_id)
    asked = checked(AbandonForm(request.POST, name=replay.name))
    operation = actions.abandon_replay(
        replay, request.user, idempotency_key=asked["idempotency_key"]
    )
    return started(request, operation, reverse("dashboard:replay", args=[replay.pk]))
