"""Runs of a job, and their checkpoints."""

from __future__ import annotations

from typing import Any

from ninja import Router

from controlplane.access.lookup import job_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.jobs import RunOut
from controlplane.api.schema.snapshots import CheckpointOut
from controlplane.snapshots.models import Checkpoint

router = Router(tags=["runs"])


@router.get("jobs/{name}/runs", response=Page[RunOut], summary="List runs")
def list_runs(
    request: ApiRequest, name: str, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Newest first; a replay's run among them."""
    runs = job_for(request.auth, name).runs.select_related("job", "version", "cluster")
    return page(runs, list, limit, cursor, "-id")


@router.get("jobs/{name}/checkpoints", response=Page[CheckpointOut], summary="List checkpoints")
def list_checkpoints(
    request: ApiRequest, name: str, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Of every run, newest first."""
    found = Checkpoint.objects.filter(run__job=job_for(request.auth, name))
    return page(found, list, limit, cursor, "-trigger_at", "-id")
