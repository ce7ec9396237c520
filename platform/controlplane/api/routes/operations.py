"""Operations: what is under way, and what became of it."""

from __future__ import annotations

from typing import Any, Literal

from ninja import Router, Status

from controlplane.access.lookup import job_for, operation_for, visible_jobs
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.jobs import Reason
from controlplane.api.schema.operations import OperationDetail, OperationOut
from controlplane.operations.actions import cancel_operation
from controlplane.operations.models import UNFINISHED, Operation

router = Router(tags=["operations"])


@router.get("operations", response=Page[OperationOut], summary="List operations")
def list_operations(
    request: ApiRequest,
    job: str = "",
    state: Literal["", "unfinished", "succeeded", "failed", "cancelled"] = "",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Newest first; of one job, in one state."""
    found = Operation.objects.select_related("job", "actor")
    if job:
        found = found.filter(job=job_for(request.auth, job))
    else:
        found = found.filter(job__in=visible_jobs(request.auth))
    if state:
        found = found.filter(state__in=UNFINISHED if state == "unfinished" else [state])
    return page(found, list, limit, cursor, "-created_at", "-id")


@router.get("operations/{operation_id}", response=OperationDetail, summary="One operation")
def one_operation(request: ApiRequest, operation_id: str) -> Operation:
    """How far it is, and what happened so far."""
    return operation_for(request.auth, operation_id)


@router.post(
    "operations/{operation_id}/cancel", response={202: OperationOut}, summary="Cancel an operation"
)
def cancel(request: ApiRequest, operation_id: str, body: Reason) -> Status[Operation]:
    """End it without its result; what it began is taken back. Operator."""
    operation = operation_for(request.auth, operation_id)
    return Status(202, cancel_operation(operation, request.auth, body.reason))
