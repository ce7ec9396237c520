"""What happened: failures of a job, and changes of the fleet."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Query, Router

from controlplane.access.lookup import job_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page, part
from controlplane.api.schema.figures import ChangeOut, FailureOut, Points
from controlplane.jobs.changes import fleet_changes
from controlplane.jobs.failure_queries import failures
from controlplane.jobs.failure_rows import failure_row

router = Router(tags=["events"])
Words = Annotated[str, Query(max_length=200, description="words of error, task or operator")]


class Changes(Page[ChangeOut]):
    """What changed, and the rows per second of all those jobs: (epoch ms, rows/s)."""

    from_ms: int
    to_ms: int
    rate: Points
    rate_missing: str


@router.get("jobs/{name}/failures", response=Page[FailureOut], summary="Why a job failed")
def list_failures(
    request: ApiRequest,
    name: str,
    span: Literal["1h", "24h", "7d", "30d", "all"] = "7d",
    text: Words = "",
    cause: Annotated[str, Query(max_length=40)] = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Newest first; with `cause`, those that differ from one another in values only."""
    found = failures(job_for(request.auth, name), span, text.replace("\0", ""), cause)
    return page(found, lambda rows: list(map(failure_row, rows)), limit, cursor, "-at", "-id")


@router.get("changes", response=Changes, summary="What changed in the fleet")
def list_changes(
    request: ApiRequest,
    hours: Literal["1", "6", "24", "168"] = "6",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Starts, savepoints, failed checkpoints, failures; of the jobs that you see, newest first."""
    found = fleet_changes(request.auth, hours)
    head = {name: getattr(found, name) for name in ("from_ms", "to_ms", "rate", "rate_missing")}
    return head | part(found.events, lambda one: (-one.at_ms, one.id), limit, cursor)
