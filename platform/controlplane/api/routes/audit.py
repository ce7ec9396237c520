"""The audit log."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Query, Router, Schema
from pydantic import AwareDatetime

from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.others import AuditOut
from controlplane.audit.queries import AuditFilter, audit_entries

router = Router(tags=["audit"])


class Wanted(Schema):
    """What is looked for."""

    job: str = ""
    actor: str = ""
    action: str = ""
    text: str = ""
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None


@router.get("audit", response=Page[AuditOut], summary="Audit log")
def list_entries(
    request: ApiRequest,
    wanted: Annotated[Wanted, Query()],
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """The entries that you may read, newest first; `actor=platform` for what nobody asked for."""
    found = audit_entries(request.auth, AuditFilter(**wanted.dict()))
    return page(found, list, limit, cursor, "-id")
