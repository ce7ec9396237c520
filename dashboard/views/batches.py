"""Streaming statistics: what the batches of a job's sources came to, and whether it keeps up."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.models import Job
from controlplane.jobs.queries import current_run, job_frame
from controlplane.jobs.streaming_queries import (
    WINDOWS,
    StreamingPage,
    plots,
    step_rows,
    streaming_page,
)
from dashboard import fmt
from dashboard.exports import download
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest, chosen, words_of

DEFAULT_MINUTES = "5"
DRAWN = (
    ("rows", "Rows per second", "read, and what could be read"),
    ("processing_time", "Processing time", "of a batch: mean and longest"),
    ("queue_delay", "Queue delay", "how long rows wait to be read: mean and longest"),
    ("total_delay", "Total delay", "queue delay and processing time"),
    ("headroom", "Headroom", "1 × is: none"),
    ("watermark_delay", "Watermark delay", "of the job, behind the newest row read"),
)
"""Key, title and note of each plot."""


class PageWords:
    """Numbers as the pages print them."""

    def length(self, ms: float) -> str:
        """A length of time."""
        return fmt.text("dur", ms)

    def rate(self, rows: float) -> str:
        """Rows per second."""
        return fmt.text("rate", rows)

    def times(self, value: float) -> str:
        """A factor."""
        return f"{fmt.fixed(value, 1)} times"


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """The last minutes, by source and by step."""
    job = job_for(request.user, name)
    frame = job_frame(job, request.user)
    figures = _figures(request, job)
    return job_page(
        request,
        "jobs/batches.html",
        "batches",
        job,
        frame,
        page=figures,
        windows=WINDOWS,
        figures_drawn=DRAWN,
        plots=plots(figures, job),
    )


@login_required
@require_safe
def series(request: UserRequest, name: str) -> JsonResponse:
    """What the plots draw, asked for every few seconds."""
    job = job_for(request.user, name)
    return JsonResponse(plots(_figures(request, job), job))


@login_required
@require_safe
def export(request: UserRequest, name: str, shape: str) -> HttpResponseBase:
    """The steps as a file."""
    job = job_for(request.user, name)
    found = _figures(request, job)
    if found.figures is None or found.chosen is None:
        return download(shape, f"{job.name}-batches", ("time_ms",), ())
    series = found.chosen.source.series
    rows = step_rows(found.figures.time_ms, series)
    return download(shape, f"{job.name}-batches", ("time_ms", *series), rows)


def _figures(request: UserRequest, job: Job) -> StreamingPage:
    minutes = chosen(request, "minutes", WINDOWS, DEFAULT_MINUTES)
    run = current_run(job)
    return streaming_page(job, run, minutes, words_of(request, "source"), PageWords())
