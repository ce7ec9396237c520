"""Whether something can start from a savepoint, as far as is known of it.

complete, its files there, and not found bad by its last verification ─▶ usable
"""

from __future__ import annotations

from django.db.models import QuerySet

from controlplane.snapshots.models import Savepoint

BAD = (Savepoint.Verdict.DAMAGED, Savepoint.Verdict.UNREADABLE)
"""Verdicts of a verification that failed."""


def usable(savepoints: QuerySet[Savepoint]) -> QuerySet[Savepoint]:
    """Those of them that something can start from."""
    there = savepoints.filter(status=Savepoint.Status.COMPLETED, missing_since=None)
    return there.exclude(verdict__in=BAD)


def why_unusable(savepoint: Savepoint) -> str:
    """Why nothing can start from it, and what to do; empty when something can."""
    if savepoint.status != Savepoint.Status.COMPLETED:
        return f"it is {savepoint.get_status_display().lower()}; choose a complete one"
    if gone := savepoint.missing_since:
        return f"its files are gone since {gone:%d %b %H:%M} UTC; choose another, or put them back"
    if savepoint.verdict not in BAD:
        return ""
    found = savepoint.problems[0] if savepoint.problems else savepoint.get_verdict_display().lower()
    when = f" at {at:%d %b %H:%M} UTC" if (at := savepoint.verified_at) else ""
    return f"its verification failed{when}: {found}; choose another, or mend and verify it again"
