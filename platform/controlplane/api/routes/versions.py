"""Versions of a job."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import File, Form, Router, Status, UploadedFile

from controlplane.access.lookup import job_for, version_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.jobs import VersionDiffOut, VersionOut
from controlplane.jobs.actions import add_version
from controlplane.jobs.models import JobVersion
from controlplane.jobs.version_diff import VersionDiff, version_diff

router = Router(tags=["versions"])


@router.get("jobs/{name}/versions", response=Page[VersionOut], summary="List versions")
def list_versions(
    request: ApiRequest, name: str, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Newest first."""
    found = job_for(request.auth, name).versions.select_related("created_by")
    return page(found, list, limit, cursor, "-number")


@router.post("jobs/{name}/versions", response={201: VersionOut}, summary="Upload a version")
def upload(
    request: ApiRequest,
    name: str,
    file: Annotated[
        UploadedFile, File(description="job file: .py, .zip or .whl; .jar for Apache Flink")
    ],
    note: Annotated[str, Form(max_length=500)] = "",
) -> Status[JobVersion]:
    """Add a version; nothing runs it yet. Operator."""
    job = job_for(request.auth, name)
    return Status(201, add_version(job, request.auth, file.name or "", file.read(), note=note))


@router.get("jobs/{name}/versions/{number}", response=VersionOut, summary="One version")
def one_version(request: ApiRequest, name: str, number: int) -> JobVersion:
    """What was uploaded."""
    return version_for(job_for(request.auth, name), number)


@router.get(
    "jobs/{name}/versions/{number}/diff/{other}", response=VersionDiffOut, summary="Differences"
)
def diff(request: ApiRequest, name: str, number: int, other: int) -> VersionDiff:
    """In what the other version differs from it: lines of text, and settings they ran with."""
    job = job_for(request.auth, name)
    return version_diff(version_for(job, number), version_for(job, other))
