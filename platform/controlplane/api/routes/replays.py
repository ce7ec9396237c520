"""Replays: listing, starting and abandoning them."""

from __future__ import annotations

from typing import Any

from ninja import Router, Status

from controlplane.access.errors import not_found
from controlplane.access.lookup import (
    job_for,
    replay_for,
    savepoint_for,
    version_for,
    visible_jobs,
)
from controlplane.api.auth import ApiRequest
from controlplane.api.keys import IdempotencyKey, key_of
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.operations import OperationOut
from controlplane.api.schema.replays import ReplayIn, ReplayOut, ReplayStarted
from controlplane.operations.models import Operation
from controlplane.replay import actions
from controlplane.replay.models import Replay

router = Router(tags=["replays"])


@router.get("replays", response=Page[ReplayOut], summary="List replays")
def list_replays(
    request: ApiRequest, job: str = "", limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Newest first; with `job`, those of one job."""
    found = Replay.objects.select_related("job", "version")
    if job:
        found = found.filter(job=job_for(request.auth, job))
    else:
        found = found.filter(job__in=visible_jobs(request.auth))
    return page(found, list, limit, cursor, "-id")


@router.post("jobs/{name}/replays", response={202: ReplayStarted}, summary="Start a replay")
def start(
    request: ApiRequest, name: str, body: ReplayIn, idempotency_key: IdempotencyKey = ""
) -> Status[dict[str, Any]]:
    """Run a version from a savepoint beside the live job. Operator."""
    job, user = job_for(request.auth, name), request.auth
    savepoint = savepoint_for(user, body.savepoint)
    if savepoint.job_id != job.pk:
        raise not_found(what="savepoint", name=f"{savepoint.pk} of {job.name}")
    replay, operation = actions.start_replay(
        savepoint,
        version_for(job, body.version),
        user,
        parallelism=body.parallelism,
        idempotency_key=key_of(user, idempotency_key),
    )
    return Status(202, {"replay": replay, "operation": operation})


@router.get("replays/{replay_id}", response=ReplayOut, summary="One replay")
def one_replay(request: ApiRequest, replay_id: int) -> Replay:
    """How far it is."""
    return replay_for(request.auth, replay_id)


@router.post("replays/{replay_id}/abandon", response={202: OperationOut}, summary="Abandon")
def abandon(
    request: ApiRequest, replay_id: int, idempotency_key: IdempotencyKey = ""
) -> Status[Operation]:
    """End a replay; the live job is not touched. Operator."""
    replay = replay_for(request.auth, replay_id)
    key = key_of(request.auth, idempotency_key)
    return Status(202, actions.abandon_replay(replay, request.auth, idempotency_key=key))
