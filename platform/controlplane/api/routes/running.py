"""What is done to the run of a job: each call begins one operation."""

from __future__ import annotations

from ninja import Router, Status

from controlplane.access.lookup import job_for, savepoint_for, version_for
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.jobs import Reason, RescaleIn, RollbackIn, StartIn, StopIn, UpgradeIn
from controlplane.api.schema.operations import OperationOut
from controlplane.jobs import running as actions
from controlplane.operations.models import Operation

router = Router(tags=["running"])


@router.post("jobs/{name}/start", response={202: OperationOut}, summary="Start")
def start(request: ApiRequest, name: str, body: StartIn) -> Status[Operation]:
    """Start a version, from nothing or from a savepoint. Operator."""
    job, user = job_for(request.auth, name), request.auth
    version = version_for(job, body.version) if body.version else None
    savepoint = savepoint_for(user, body.savepoint) if body.savepoint else None
    operation = actions.deploy(
        job,
        user,
        version,
        savepoint,
        drop=body.drop,
        accept_missing=body.accept_missing_input,
        reason=body.reason,
    )
    return Status(202, operation)


@router.post("jobs/{name}/upgrade", response={202: OperationOut}, summary="Upgrade")
def upgrade(request: ApiRequest, name: str, body: UpgradeIn) -> Status[Operation]:
    """Stop what runs with a savepoint and start another version from it. Operator."""
    job, user = job_for(request.auth, name), request.auth
    version = version_for(job, body.version)
    savepoint = savepoint_for(user, body.savepoint) if body.savepoint else None
    operation = actions.upgrade(
        job,
        user,
        version,
        savepoint,
        mode=body.mode,
        drop=body.drop,
        accept_missing=body.accept_missing_input,
        consent=body.consent,
        reason=body.reason,
    )
    return Status(202, operation)


@router.post("jobs/{name}/rollback", response={202: OperationOut}, summary="Roll back")
def rollback(request: ApiRequest, name: str, body: RollbackIn) -> Status[Operation]:
    """Go back to the last version that was healthy, with the present state. Operator."""
    job, user = job_for(request.auth, name), request.auth
    operation = actions.rollback(
        job, user, mode=body.mode, accept_missing=body.accept_missing_input, reason=body.reason
    )
    return Status(202, operation)


@router.post("jobs/{name}/rescale", response={202: OperationOut}, summary="Rescale")
def rescale(request: ApiRequest, name: str, body: RescaleIn) -> Status[Operation]:
    """Run the job on at another parallelism. Operator."""
    job, user = job_for(request.auth, name), request.auth
    return Status(202, actions.rescale(job, user, body.parallelism, reason=body.reason))


@router.post("jobs/{name}/stop", response={202: OperationOut}, summary="Stop")
def stop(request: ApiRequest, name: str, body: StopIn) -> Status[Operation]:
    """Stop with a savepoint; drained, every window fires first. Operator."""
    job = job_for(request.auth, name)
    operation = actions.stop(job, request.auth, drain=body.drain, reason=body.reason)
    return Status(202, operation)


@router.post("jobs/{name}/cancel", response={202: OperationOut}, summary="Cancel")
def cancel(request: ApiRequest, name: str, body: Reason) -> Status[Operation]:
    """End the run at once; what it did since its last checkpoint is done again. Operator."""
    job = job_for(request.auth, name)
    return Status(202, actions.cancel(job, request.auth, reason=body.reason))
