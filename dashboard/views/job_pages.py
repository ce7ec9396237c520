"""What the pages of one job have in common: the frame around them, their tab, the job's number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.jobs.models import Job
from controlplane.jobs.queries import JobFrame
from dashboard.views.requests import UserRequest


def job_page(
    request: UserRequest,
    template: str,
    tab: str,
    job: Job,
    frame: JobFrame,
    *,
    page_data: Mapping[str, Any] | None = None,
    **shown: Any,
) -> HttpResponse:
    """A page of the job under that tab; scripts get its number and `page_data`."""
    common = {
        "section": "jobs",
        "tab": tab,
        "job": job,
        "frame": frame,
        "page_data": {"job": job.pk, **(page_data or {})},
    }
    return render(request, template, {**common, **shown})
