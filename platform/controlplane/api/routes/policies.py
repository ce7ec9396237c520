"""Which savepoints of a job are kept."""

from __future__ import annotations

from ninja import Router

from controlplane.access.lookup import job_for
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.snapshots import Policy
from controlplane.snapshots.models import SavepointPolicy
from controlplane.snapshots.policy_actions import PolicyWish, set_policy

router = Router(tags=["retention"])


@router.get("jobs/{name}/retention", response=Policy, summary="Rules of retention")
def one_policy(request: ApiRequest, name: str) -> SavepointPolicy | Policy:
    """The rules of a job; without any, all is kept."""
    job = job_for(request.auth, name)
    return SavepointPolicy.objects.filter(job=job).first() or Policy.model_validate({})


@router.put("jobs/{name}/retention", response=Policy, summary="Set rules of retention")
def change(request: ApiRequest, name: str, body: Policy) -> SavepointPolicy:
    """Decide which are kept; what is left out is no rule. Operator."""
    return set_policy(job_for(request.auth, name), request.auth, PolicyWish(**body.dict()))
