"""Why a job failed: causes, how often, where, and what followed."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.failure_queries import SPANS, failure_history, failures_for_export
from controlplane.jobs.failure_rows import COLUMNS, failure_row
from controlplane.jobs.queries import job_frame
from dashboard.exports import download
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest, chosen, words_of

DEFAULT_SPAN = "7d"


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """Causes, the newest first."""
    job = job_for(request.user, name)
    span, words = _asked(request)
    cause = request.GET.get("cause", "")[:40].replace("\0", "")
    return job_page(
        request,
        "jobs/exceptions.html",
        "exceptions",
        job,
        job_frame(job, request.user),
        history=failure_history(job, span, words, cause),
        cause=cause,
        spans=SPANS,
    )


@login_required
@require_safe
def export(request: UserRequest, name: str, shape: str) -> HttpResponseBase:
    """The same failures as a file, with their traces."""
    job = job_for(request.user, name)
    rows = map(failure_row, failures_for_export(job, *_asked(request)))
    return download(shape, f"{job.name}-exceptions", COLUMNS, rows)


def _asked(request: UserRequest) -> tuple[str, str]:
    return chosen(request, "span", SPANS, DEFAULT_SPAN), words_of(request, "q")
