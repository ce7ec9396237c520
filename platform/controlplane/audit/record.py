"""Adds one entry to the audit log, in the transaction of what it records.

Guarantee   What looks like a secret is struck out before it is written: `redact.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User

from controlplane.audit.context import current_request_id
from controlplane.audit.models import AuditEntry
from controlplane.audit.redact import redacted, redacted_text

if TYPE_CHECKING:
    from controlplane.access.models import Team
    from controlplane.jobs.models import Job


def record(
    actor: User | None,
    action: str,
    target: str,
    *,
    job: Job | None = None,
    team: Team | None = None,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Who (nobody: the platform itself) did what, to what, why, and what changed."""
    return AuditEntry.objects.create(
        actor=actor,
        action=action,
        target=target[:200],
        job=job,
        team=team,
        reason=redacted_text(reason)[:500],
        before=redacted(dict(before or {})),
        after=redacted(dict(after or {})),
        request_id=current_request_id(),
    )
