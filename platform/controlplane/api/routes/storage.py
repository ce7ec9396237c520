"""What lies where savepoints are kept, and what is in one."""

from __future__ import annotations

from typing import Annotated, Any

from django.utils import timezone
from ninja import Query, Router, Status

from controlplane.access.lookup import job_for, savepoint_for, stray_for, visible_jobs
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import (
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    Page,
    newest_first,
    page,
    part,
)
from controlplane.api.schema.storage import CatalogueOut, DiffOut, RowsOut, ScanOut, StrayOut
from controlplane.backends.snapshot_contract import StateRows
from controlplane.snapshots import inspection, strays
from controlplane.snapshots.catalogue import Wanted, rows_of, storage
from controlplane.snapshots.models import StrayFolder

router = Router(tags=["savepoints"])
Name = Annotated[str, Query(max_length=200)]
Key = Annotated[str, Query(max_length=500, description="columns of the key: carrier=UA, day=3")]


@router.get("savepoints", response=Page[CatalogueOut], summary="Search savepoints")
def search_savepoints(
    request: ApiRequest,
    job: str = "",
    text: Annotated[str, Query(max_length=100, description="words of label, job or folder")] = "",
    origin: str = "",
    health: str = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Of every job that you see, newest first, each with what becomes of it and why."""
    user = request.auth
    jobs = [job_for(user, job)] if job else list(visible_jobs(user).distinct())
    found = rows_of(jobs, timezone.now(), Wanted(text, origin, health))
    return part(
        found,
        lambda row: newest_first(row.savepoint.created_at, row.number),
        limit,
        cursor,
    )


@router.get("jobs/{name}/savepoints/scan", response=ScanOut, summary="The last scan")
def last_scan(request: ApiRequest, name: str) -> ScanOut:
    """When files and catalogue were compared, and which savepoints have no files."""
    return ScanOut.of(storage([job_for(request.auth, name)]))


@router.post("jobs/{name}/savepoints/scan", response=ScanOut, summary="Scan now")
def scan(request: ApiRequest, name: str) -> ScanOut:
    """Compare the catalogue with what is stored, both ways. Operator."""
    job = job_for(request.auth, name)
    strays.rescan(job, request.auth)
    return ScanOut.of(storage([job]))


@router.get("jobs/{name}/strays", response=Page[StrayOut], summary="List stray folders")
def list_strays(
    request: ApiRequest, name: str, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Files that are named after the job and are in no catalogue, as the last scan found them."""
    found = StrayFolder.objects.filter(job=job_for(request.auth, name))
    return page(found, list, limit, cursor, "location", "id")


@router.delete("strays/{stray_id}", response={204: None}, summary="Clear a stray folder")
def clear_stray(request: ApiRequest, stray_id: int) -> Status[None]:
    """Remove what is left of a savepoint that was never complete. Operator."""
    strays.clear_stray(stray_for(request.auth, stray_id), request.auth)
    return Status(204, None)


@router.get("savepoints/{savepoint_id}/rows", response=RowsOut, summary="Rows of a state")
def rows(
    request: ApiRequest, savepoint_id: int, operator: Name, state: Name, key: Key = ""
) -> StateRows:
    """The first fifty, of all or of one key; who read them is audited. Operator."""
    savepoint = savepoint_for(request.auth, savepoint_id)
    wanted = inspection.key_of(key)
    return inspection.read_rows(savepoint, request.auth, operator, state, wanted)


@router.get("savepoints/{savepoint_id}/diff/{other_id}", response=DiffOut, summary="Differences")
def diff(request: ApiRequest, savepoint_id: int, other_id: int) -> dict[str, Any]:
    """In what the other one differs from it; the first question begins to compare. Operator."""
    left = savepoint_for(request.auth, savepoint_id)
    right = savepoint_for(request.auth, other_id)
    return {
        "left": left.pk,
        "right": right.pk,
        "rows": inspection.compare(left, right, request.auth),
        "changes": inspection.contents_diff(left.contents, right.contents),
    }
