"""Checkpoint history of a job."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.queries import job_frame
from controlplane.jobs.settings import settings_from
from controlplane.snapshots.queries import checkpoint_history
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """The newest sixty, with durations, sizes and failures."""
    job = job_for(request.user, name)
    return render(
        request,
        "jobs/checkpoints.html",
        {
            "section": "jobs",
            "tab": "checkpoints",
            "job": job,
            "frame": job_frame(job, request.user),
            "history": checkpoint_history(job),
            "page_data": {"job": job.pk},
            "interval_ms": settings_from(job.settings).checkpoint_interval_ms,
        },
    )
