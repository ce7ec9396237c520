"""The audit log as pages, the API and files show it: filtered, newest first, page by page.

Guarantee   Who may see a job reads what was done to it; who is in a team, what was done to the
            team; everybody, what they did themselves; platform admins, all of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from controlplane.access.grants import grant_of
from controlplane.access.lookup import is_platform_admin, visible_jobs, visible_teams
from controlplane.audit.models import AuditEntry

PAGE = 50
MAX_ROWS = 20_000
"""Of a file, about 10 MB; who wants more asks for one span of time after the other."""

COLUMNS = ("at", "actor", "action", "target", "job", "team", "reason", "before", "after", "request")


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What is looked for; what is empty or None does not matter."""

    job: str = ""
    actor: str = ""
    action: str = ""
    """The whole action (`job.create`) or its first part (`job`)."""
    text: str = ""
    """Part of the target, the reason, or the whole request id."""
    since: datetime | None = None
    until: datetime | None = None
    """Half-open: not included."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing before and after; empty when it was not there."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of the log."""

    entries: tuple[AuditEntry, ...]
    next: int | None
    """Cursor of the older entries, if there are any."""

    @property
    def lines(self) -> tuple[tuple[AuditEntry, tuple[Change, ...]], ...]:
        """Each entry with what it changed."""
        return tuple((entry, changes(entry)) for entry in self.entries)


def changes(entry: AuditEntry) -> tuple[Change, ...]:
    """What was changed, by name; what stayed as it was is left out."""
    names = [*entry.before, *(name for name in entry.after if name not in entry.before)]
    pairs = ((name, entry.before.get(name), entry.after.get(name)) for name in names)
    return tuple(
        Change(name, _plain(before), _plain(after))
        for name, before, after in pairs
        if before != after
    )


def _plain(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def visible_entries(user: User) -> QuerySet[AuditEntry]:
    """The entries that this person may read."""
    found = AuditEntry.objects.select_related("actor", "job", "team")
    if is_platform_admin(user):
        return found
    theirs = Q(job__in=visible_jobs(user)) | Q(team__in=visible_teams(user))
    if grant_of(user).team_id is None:
        theirs |= Q(actor=user, job=None, team=None)
    return found.filter(theirs)


def audit_entries(user: User, wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """What this person may read and looks for, newest first."""
    found = visible_entries(user)
    if wanted.job:
        found = found.filter(job__name=wanted.job)
    if wanted.actor == "platform":
        found = found.filter(actor=None)
    elif wanted.actor:
        found = found.filter(actor__username=wanted.actor)
    if wanted.action:
        within = Q(action=wanted.action) | Q(action__startswith=f"{wanted.action}.")
        found = found.filter(within)
    if wanted.text:
        text = wanted.text
        found = found.filter(
            Q(target__icontains=text) | Q(reason__icontains=text) | Q(request_id=text)
        )
    return _between(found, wanted).order_by("-id")


def audit_page(
    user: User, wanted: AuditFilter, before: int | None = None, limit: int = PAGE
) -> AuditPage:
    """At most `limit` entries, older than the cursor `before`."""
    found = audit_entries(user, wanted)
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = tuple(found[: limit + 1])
    more = len(rows) > limit
    return AuditPage(rows[:limit], rows[limit - 1].pk if more else None)


def audit_rows(user: User, wanted: AuditFilter) -> Iterator[dict[str, str]]:
    """The newest entries as rows of a file, by the names of `COLUMNS`."""
    return map(_row, audit_entries(user, wanted)[:MAX_ROWS].iterator())


def _between(found: QuerySet[AuditEntry], wanted: AuditFilter) -> QuerySet[AuditEntry]:
    if wanted.since is not None:
        found = found.filter(at__gte=wanted.since)
    if wanted.until is not None:
        found = found.filter(at__lt=wanted.until)
    return found


def _row(entry: AuditEntry) -> dict[str, str]:
    return {
        "at": entry.at.isoformat(timespec="milliseconds"),
        "actor": entry.actor.username if entry.actor else "",
        "action": entry.action,
        "target": entry.target,
        "job": entry.job.name if entry.job else "",
        "team": entry.team.name if entry.team else "",
        "reason": entry.reason,
        "before": _json(entry.before),
        "after": _json(entry.after),
        "request": entry.request_id,
    }


def _json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False) if values else ""
