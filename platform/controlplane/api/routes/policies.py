"""Which savepoints of a job are kept."""

from __future__ import annotations

from typing import Annotated, Any

from django.utils import timezone
from ninja import Field, Query, Router

from controlplane.access.lookup import job_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, Place, newest_first, part
from controlplane.api.schema.snapshots import Policy
from controlplane.api.schema.storage import VerdictOut
from controlplane.snapshots.catalogue import PreviewRow, preview
from controlplane.snapshots.models import SavepointPolicy
from controlplane.snapshots.policy_actions import PolicyWish, set_policy

router = Router(tags=["retention"])


class DryRun(Page[VerdictOut]):
    """What rules would do with each savepoint, newest first."""

    kept: int
    doomed: int = Field(description="how many would be deleted")
    freed_bytes: int


@router.get("jobs/{name}/retention", response=Policy, summary="Rules of retention")
def one_policy(request: ApiRequest, name: str) -> SavepointPolicy | Policy:
    """The rules of a job; without any, all is kept."""
    job = job_for(request.auth, name)
    return SavepointPolicy.objects.filter(job=job).first() or Policy.model_validate({})


@router.put("jobs/{name}/retention", response=Policy, summary="Set rules of retention")
def change(request: ApiRequest, name: str, body: Policy) -> SavepointPolicy:
    """Decide which are kept; what is left out is no rule. Operator."""
    return set_policy(job_for(request.auth, name), request.auth, PolicyWish(**body.dict()))


@router.get("jobs/{name}/retention/preview", response=DryRun, summary="Dry run of rules")
def dry_run(
    request: ApiRequest,
    name: str,
    rules: Annotated[Policy, Query()],
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """What rules that are not saved would do with each savepoint, and why; nothing is changed."""
    job, wish = job_for(request.auth, name), PolicyWish(**rules.dict())
    found = preview(job, wish.rules(), timezone.now())
    head = {key: getattr(found, key) for key in ("kept", "doomed", "freed_bytes")}
    return head | part(found.rows, _place, limit, cursor)


def _place(row: PreviewRow) -> Place:
    one = row.savepoint
    return newest_first(one.taken_at or one.completed_at or one.created_at, one.pk)
