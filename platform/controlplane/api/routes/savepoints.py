"""Savepoints: the catalogue, taking one, and importing a folder."""

from __future__ import annotations

from typing import Any

from ninja import Router, Status

from controlplane.access.lookup import job_for, savepoint_for
from controlplane.api.auth import ApiRequest
from controlplane.api.keys import IdempotencyKey, key_of
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.operations import OperationOut
from controlplane.api.schema.snapshots import (
    ImportIn,
    SavepointDetail,
    SavepointIn,
    SavepointOut,
)
from controlplane.operations.models import Operation
from controlplane.snapshots import actions
from controlplane.snapshots.models import Savepoint

router = Router(tags=["savepoints"])


@router.get("jobs/{name}/savepoints", response=Page[SavepointOut], summary="List savepoints")
def list_savepoints(
    request: ApiRequest, name: str, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """The catalogue of a job, newest first."""
    job = job_for(request.auth, name)
    found = job.savepoints.exclude(status=Savepoint.Status.DELETED)
    found = found.select_related("job", "version", "created_by")
    return page(found, list, limit, cursor, "-created_at", "-id")


@router.post("jobs/{name}/savepoints", response={202: OperationOut}, summary="Take a savepoint")
def take(
    request: ApiRequest, name: str, body: SavepointIn, idempotency_key: IdempotencyKey = ""
) -> Status[Operation]:
    """Take one now; the job goes on meanwhile. Operator."""
    job, user = job_for(request.auth, name), request.auth
    key = key_of(user, idempotency_key)
    return Status(202, actions.request_savepoint(job, user, label=body.label, idempotency_key=key))


@router.post("jobs/{name}/savepoints/import", response={202: OperationOut}, summary="Import")
def take_in(
    request: ApiRequest, name: str, body: ImportIn, idempotency_key: IdempotencyKey = ""
) -> Status[Operation]:
    """Put a folder that lies somewhere into the catalogue, once it is found whole. Operator."""
    job, user = job_for(request.auth, name), request.auth
    key = key_of(user, idempotency_key)
    operation = actions.import_savepoint(
        job, user, body.path, label=body.label, idempotency_key=key
    )
    return Status(202, operation)


@router.get("savepoints/{savepoint_id}", response=SavepointDetail, summary="One savepoint")
def one_savepoint(request: ApiRequest, savepoint_id: int) -> Savepoint:
    """What it holds, and where its sources stood."""
    return savepoint_for(request.auth, savepoint_id)
