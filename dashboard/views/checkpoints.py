"""Checkpoint history of a job, one of them in detail, and how they are taken."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.backends.checkpoint_parts import config_of
from controlplane.jobs.queries import job_frame
from controlplane.jobs.settings import settings_from
from controlplane.snapshots.checkpoint_page import PHASES, last_day, pinned
from controlplane.snapshots.queries import checkpoint_history
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """The newest sixty as bars and rows, and the one that is pinned."""
    job = job_for(request.user, name)
    frame, history = job_frame(job, request.user), checkpoint_history(job)
    wanted, operator = request.GET.get("id", ""), request.GET.get("op", "")
    run = frame.run if frame.is_running else None
    interval_ms = settings_from(job.settings).checkpoint_interval_ms
    return job_page(
        request,
        "jobs/checkpoints.html",
        "checkpoints",
        job,
        frame,
        history=history,
        day=last_day(job),
        pinned=pinned(job, wanted, history.lines, operator),
        follows=not wanted,
        operator=operator,
        phases=PHASES,
        config=config_of(run.cluster, run.engine_job_id) if run else None,
        interval_ms=interval_ms,
        next_ms=history.lines[0].trigger_ms + interval_ms if run and history.lines else None,
    )
