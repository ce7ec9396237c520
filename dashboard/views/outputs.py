"""What a job writes: plots, where it goes, the last rows, and what replays write beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.output_files import Files
from controlplane.jobs.output_page import Output, OutputPage, output_page
from controlplane.jobs.output_series import Points
from controlplane.jobs.queries import current_runs, job_frame
from controlplane.metrics.queries import output_choices
from dashboard.exports import download
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest

COLUMNS = (
    *("output", "kind", "target", "replay", "files", "size_bytes", "series"),
    *("newest_written_ms", "newest_event_ms", "reason"),
)


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
    run = current_runs([job.pk]).get(job.pk)
    return download(shape, f"{job.name}-outputs", COLUMNS, _rows(output_page(job, run)))


def _rows(found: OutputPage) -> Iterator[dict[str, Any]]:
    for one in found.outputs:
        yield _row(one, one.sink.target, one.files, one.points)
        for other in one.beside:
            beside = _row(one, other.target, other.files, other.points)
            yield beside | {"replay": other.replay}


def _row(one: Output, target: str, files: Files | None, points: Points | None) -> dict[str, Any]:
    rows, seen = files.rows if files else None, files or points
    return {
        "output": one.sink.name,
        "kind": one.sink.kind,
        "target": target,
        "files": files.files if files else None,
        "size_bytes": files.size_bytes if files else None,
        "series": points.series if points else None,
        "newest_written_ms": files.newest_ms if files else None,
        "newest_event_ms": points.newest_ms if points else rows.newest_event_ms if rows else None,
        "reason": seen.reason if seen else one.reason,
    }
