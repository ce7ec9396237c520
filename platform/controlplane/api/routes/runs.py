"""Runs of a job, and their checkpoints."""

from __future__ import annotations

from typing import Any

from ninja import Router

from controlplane.access.errors import not_found
from controlplane.access.lookup import job_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.jobs import RunOut
from controlplane.api.schema.snapshots import CheckpointDetail, CheckpointOut
from controlplane.moments import moment
from controlplane.snapshots.checkpoint_page import pinned
from controlplane.snapshots.models import Checkpoint
from controlplane.snapshots.queries import checkpoint_history

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


@router.get(
    "jobs/{name}/checkpoints/{run}/{checkpoint}",
    response=CheckpointDetail,
    summary="One checkpoint",
)
def one_checkpoint(request: ApiRequest, name: str, run: int, checkpoint: int) -> dict[str, Any]:
    """Operator by operator, how long the phases of each subtask took, and why it failed."""
    job = job_for(request.auth, name)
    found = pinned(job, f"{run}-{checkpoint}", checkpoint_history(job).lines, "")
    if found is None:
        raise not_found(what="checkpoint", name=f"{checkpoint} of run {run}")
    line = found.line
    return {
        "run_id": line.run,
        "engine_checkpoint_id": line.checkpoint,
        "kind": line.kind,
        "status": line.status,
        "trigger_at": moment(line.trigger_ms),
        "duration_ms": line.dur_ms,
        "size_bytes": line.bytes,
        "external_path": line.path,
        "failure": line.failure,
        "reason": found.reason,
        "failed_in_a_row": found.in_a_row,
        "operators": found.parts.operators,
        "why_not": found.parts.why_not,
    }
