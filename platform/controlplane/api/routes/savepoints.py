"""Savepoints: the catalogue, taking one, and importing a folder."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from ninja import Router, Status

from controlplane.access.lookup import job_for, require, savepoint_for
from controlplane.access.models import Role
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.jobs import Reason
from controlplane.api.schema.operations import OperationOut
from controlplane.api.schema.snapshots import (
    DeleteIn,
    ImportIn,
    SavepointChange,
    SavepointDetail,
    SavepointIn,
    SavepointOut,
)
from controlplane.operations.models import Operation
from controlplane.snapshots import actions
from controlplane.snapshots.models import ENDED, Savepoint

router = Router(tags=["savepoints"])


@router.get("jobs/{name}/savepoints", response=Page[SavepointOut], summary="List savepoints")
def list_savepoints(
    request: ApiRequest, name: str, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """The catalogue of a job, newest first."""
    job = job_for(request.auth, name)
    found = job.savepoints.exclude(status__in=ENDED)
    found = found.select_related("job", "version", "created_by")
    return page(found, list, limit, cursor, "-created_at", "-id")


@router.post("jobs/{name}/savepoints", response={202: OperationOut}, summary="Take a savepoint")
def take(request: ApiRequest, name: str, body: SavepointIn) -> Status[Operation]:
    """Take one now; the job goes on meanwhile. Operator."""
    job, user = job_for(request.auth, name), request.auth
    return Status(202, actions.request_savepoint(job, user, label=body.label))


@router.post("jobs/{name}/savepoints/import", response={202: OperationOut}, summary="Import")
def take_in(request: ApiRequest, name: str, body: ImportIn) -> Status[Operation]:
    """Put a folder that lies somewhere into the catalogue, once it is found whole. Operator."""
    job, user = job_for(request.auth, name), request.auth
    operation = actions.import_savepoint(job, user, body.path, label=body.label)
    return Status(202, operation)


@router.get("savepoints/{savepoint_id}", response=SavepointDetail, summary="One savepoint")
def one_savepoint(request: ApiRequest, savepoint_id: int) -> Savepoint:
    """What it holds, and where its sources stood."""
    return savepoint_for(request.auth, savepoint_id)


@router.patch("savepoints/{savepoint_id}", response=SavepointDetail, summary="Change a savepoint")
def change(request: ApiRequest, savepoint_id: int, body: SavepointChange) -> Savepoint:
    """Name it, pin it, say how long to keep it: all of it, or nothing. Operator."""
    savepoint, user = savepoint_for(request.auth, savepoint_id), request.auth
    require(user, savepoint.job, Role.OPERATOR)
    given = body.dict(exclude_unset=True)
    with transaction.atomic():
        if given.get("label") is not None:
            actions.set_label(savepoint, user, given["label"])
        if given.get("pinned") is not None:
            actions.set_pinned(savepoint, user, pinned=given["pinned"])
        if "expires_at" in given:
            actions.set_expiry(savepoint, user, given["expires_at"])
    return savepoint_for(user, savepoint.pk)


@router.post("savepoints/{savepoint_id}/verify", response={202: OperationOut}, summary="Verify")
def verify(request: ApiRequest, savepoint_id: int) -> Status[Operation]:
    """Let the engine read all of it. Operator."""
    savepoint, user = savepoint_for(request.auth, savepoint_id), request.auth
    return Status(202, actions.verify_savepoint(savepoint, user))


@router.post("savepoints/{savepoint_id}/delete", response=SavepointDetail, summary="Delete")
def delete(request: ApiRequest, savepoint_id: int, body: DeleteIn) -> Savepoint:
    """Mark it: it is deleted after the job's time of grace. A pin takes that back. Operator."""
    savepoint, user = savepoint_for(request.auth, savepoint_id), request.auth
    actions.mark_savepoint(savepoint, user, body.reason, at_once=body.at_once)
    return savepoint_for(user, savepoint_id)


@router.post("savepoints/{savepoint_id}/detach", response=SavepointDetail, summary="Detach")
def detach(request: ApiRequest, savepoint_id: int, body: Reason) -> Savepoint:
    """End its record and leave its files where they are. Operator."""
    savepoint, user = savepoint_for(request.auth, savepoint_id), request.auth
    actions.detach_savepoint(savepoint, user, body.reason)
    return savepoint_for(user, savepoint_id)
