"""Versions of a job: what was uploaded, and uploading the next one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import job_for, version_for
from controlplane.jobs.actions import add_version
from controlplane.jobs.first_replay import upload_corrected
from controlplane.jobs.queries import job_frame, version_rows
from controlplane.jobs.version_diff import version_diff
from dashboard.answers import checked, said
from dashboard.configuration_forms import DiffForm
from dashboard.forms import VersionForm
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """Every version, newest first."""
    job = job_for(request.user, name)
    frame = job_frame(job, request.user)
    return job_page(
        request,
        "jobs/versions.html",
        "versions",
        job,
        frame,
        rows=version_rows(job, frame.run),
    )


@login_required
@require_POST
def upload(request: UserRequest, name: str) -> HttpResponse:
    """Add a version; nothing runs it yet."""
    job = job_for(request.user, name)
    asked = checked(VersionForm(request.POST, request.FILES))
    file = asked["file"]
    version = add_version(job, request.user, file.name, file.read(), note=asked["note"])
    back = reverse("dashboard:versions", args=[name])
    return said(request, f"Version {version.number} of {job.name} is here", back, move=True)


@login_required
@require_POST
def corrected(request: UserRequest, name: str) -> HttpResponse:
    """Add the demo's second version to its flights; nothing runs it yet."""
    version = upload_corrected(job_for(request.user, name), request.user)
    back = reverse("dashboard:job", args=[name])
    return said(request, f"Version {version.number} of {name} is here", back, move=True)


@login_required
@require_safe
def diff(request: UserRequest, name: str) -> HttpResponse:
    """What differs between two versions."""
    job = job_for(request.user, name)
    asked = checked(DiffForm(request.GET))
    found = version_diff(version_for(job, asked["old"]), version_for(job, asked["new"]))
    return job_page(
        request,
        "jobs/version_diff.html",
        "versions",
        job,
        job_frame(job, request.user),
        found=found,
    )
