"""What a job writes: plots, where it goes, the last rows, and what replays write beside it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.output_page import output_page
from controlplane.jobs.output_rows import COLUMNS, output_rows
from controlplane.jobs.queries import current_run, job_frame
from controlplane.metrics.queries import output_choices
from dashboard.exports import download
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """Each output with its last rows."""
    job = job_for(request.user, name)
    frame = job_frame(job, request.user)
    return job_page(
        request,
        "jobs/outputs.html",
        "outputs",
        job,
        frame,
        page=output_page(job, frame.run),
        choices=output_choices(job),
    )


@login_required
@require_safe
def export(request: UserRequest, name: str, shape: str) -> HttpResponseBase:
    """The list of outputs as a file, shadow outputs among them."""
    job = job_for(request.user, name)
    run = current_run(job)
    return download(shape, f"{job.name}-outputs", COLUMNS, output_rows(output_page(job, run)))
