"""Why a job failed: causes, how often, where, and what followed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.failure_queries import (
    SPANS,
    Occurrence,
    failure_history,
    failures_for_export,
)
from controlplane.jobs.models import Job
from controlplane.jobs.queries import job_frame
from dashboard.exports import download
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest, chosen, words_of

DEFAULT_SPAN = "7d"
COLUMNS = (
    *("at", "error", "sentence", "domain", "operator", "task", "task_manager", "run", "version"),
    *("replay", "restarted_at", "restored_checkpoint", "restored_path", "verdict", "echoes"),
    *("cause", "trace"),
)


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
    return download(shape, f"{job.name}-exceptions", COLUMNS, _rows(job, *_asked(request)))


def _asked(request: UserRequest) -> tuple[str, str]:
    return chosen(request, "span", SPANS, DEFAULT_SPAN), words_of(request, "q")


def _rows(job: Job, span: str, words: str) -> Iterator[dict[str, Any]]:
    for row in failures_for_export(job, span, words):
        yield {
            "at": row.at.isoformat(),
            "error": row.name,
            "sentence": row.sentence,
            "domain": row.domain,
            "operator": row.operator,
            "task": row.task,
            "task_manager": row.task_manager,
            "run": row.run_id,
            "version": row.run.version.number,
            "replay": Occurrence(row).replay,
            "restarted_at": row.restarted_at.isoformat() if row.restarted_at else None,
            "restored_checkpoint": row.restored_checkpoint,
            "restored_path": row.restored_path,
            "verdict": row.verdict,
            "echoes": len(row.echoes),
            "cause": row.fingerprint,
            "trace": row.trace,
        }
