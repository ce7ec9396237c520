"""What people do with savepoints; schedules and rules have files of their own.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from controlplane.access.errors import Refused, conflict, invalid
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.jobs.models import Job
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.snapshots import lifecycle
from controlplane.snapshots.keeping import kept_because
from controlplane.snapshots.models import Savepoint

GRACE = timedelta(hours=24)
"""Between the mark of a person and the deletion, when the job's rules name no other."""


def request_savepoint(
    job: Job, actor: User, label: str = "", idempotency_key: str = ""
) -> Operation:
    """Take a savepoint now. Operator."""
    require(actor, job, Role.OPERATOR)
    params = {"label": _label(label), "origin": Savepoint.Origin.MANUAL.value}
    return start_operation("savepoint", job, actor, params, idempotency_key)


def import_savepoint(
    job: Job, actor: User, path: str, label: str = "", idempotency_key: str = ""
) -> Operation:
    """Put a savepoint that lies somewhere into the catalogue, once it is found whole. Operator."""
    require(actor, job, Role.OPERATOR)
    location = path.strip().rstrip("/")
    if not location.startswith(("/", "file://", "s3://")) or "\0" in location:
        msg = f"savepoint path must be absolute: got {path[:100]!r}; give the folder's full path"
        raise invalid(msg, "path")
    params = {"location": location, "label": _label(label)}
    return start_operation("import", job, actor, params, idempotency_key)


def verify_savepoint(
    savepoint: Savepoint, actor: User | None, idempotency_key: str = ""
) -> Operation:
    """Let the engine read all of it; nobody: the platform does so by itself. Operator."""
    if actor is not None:
        require(actor, savepoint.job, Role.OPERATOR)
    params = {"savepoint": savepoint.pk}
    return start_operation("verify", savepoint.job, actor, params, idempotency_key)


@transaction.atomic
def set_label(savepoint: Savepoint, actor: User, label: str) -> Savepoint:
    """Name it. Operator."""
    require(actor, savepoint.job, Role.OPERATOR)
    return _change(savepoint, actor, "label", _label(label))


@transaction.atomic
def set_pinned(savepoint: Savepoint, actor: User, *, pinned: bool) -> Savepoint:
    """Keep it whatever any rule says, or leave it to the rules again. Operator.

    A pin takes a mark for deletion away: that is how people undo one.
    """
    require(actor, savepoint.job, Role.OPERATOR)
    if savepoint.status == Savepoint.Status.DELETING:
        msg = f"savepoint {savepoint.pk} is being deleted: it is too late to keep it"
        raise conflict(msg)
    _change(savepoint, actor, "pinned", pinned)
    if pinned and lifecycle.unmark(savepoint):
        record(actor, "savepoint.keep", str(savepoint), job=savepoint.job)
    return savepoint


@transaction.atomic
def set_expiry(
    savepoint: Savepoint, actor: User, expires_at: datetime | None, now: datetime | None = None
) -> Savepoint:
    """Keep it until then and not longer; None: the rules decide. Operator."""
    require(actor, savepoint.job, Role.OPERATOR)
    if expires_at is not None and expires_at <= (now or timezone.now()):
        msg = (
            f"expiry must lie in the future: got {expires_at:%Y-%m-%d %H:%M} UTC; delete it instead"
        )
        raise invalid(msg, "expires_at")
    return _change(savepoint, actor, "expires_at", expires_at)


@transaction.atomic
def mark_savepoint(
    savepoint: Savepoint,
    actor: User,
    reason: str = "",
    *,
    at_once: bool = False,
    now: datetime | None = None,
) -> Savepoint:
    """Mark it for deletion, after the job's time of grace or at once. Operator.

    Raises Refused (409) for what is pinned, needed, or the last good one.
    """
    require(actor, savepoint.job, Role.OPERATOR)
    Job.objects.select_for_update().get(pk=savepoint.job_id)
    if why := kept_because(savepoint):
        msg = f"savepoint {savepoint.pk} is not deleted: {why}"
        raise Refused(409, "needed", msg)
    at = (now or timezone.now()) + (timedelta() if at_once else grace_of(savepoint.job))
    words = reason.strip() or f"asked for by {actor.get_username()}"
    if not lifecycle.mark(savepoint, words, at, actor):
        status = savepoint.get_status_display().lower()
        msg = f"savepoint {savepoint.pk} cannot be marked for deletion: it is {status}"
        raise conflict(msg)
    after = {"delete_at": at.isoformat(), "location": savepoint.location}
    record(actor, "savepoint.mark", str(savepoint), job=savepoint.job, reason=reason, after=after)
    return savepoint


@transaction.atomic
def detach_savepoint(savepoint: Savepoint, actor: User, reason: str = "") -> Savepoint:
    """End its record and leave its files where they are. Operator."""
    require(actor, savepoint.job, Role.OPERATOR)
    Job.objects.select_for_update().get(pk=savepoint.job_id)
    if why := kept_because(savepoint):
        msg = f"savepoint {savepoint.pk} is not detached: {why}"
        raise Refused(409, "needed", msg)
    if not lifecycle.detach(savepoint, timezone.now()):
        status = savepoint.get_status_display().lower()
        msg = f"savepoint {savepoint.pk} cannot be detached: it is {status}"
        raise conflict(msg)
    before = {"location": savepoint.location}
    record(
        actor, "savepoint.detach", str(savepoint), job=savepoint.job, reason=reason, before=before
    )
    return savepoint


def grace_of(job: Job) -> timedelta:
    """How long a mark stands before the deletion."""
    policy = getattr(job, "savepoint_policy", None)
    return GRACE if policy is None else timedelta(hours=policy.grace_hours)


def _label(text: str) -> str:
    return text.strip()[:200]


def _change(savepoint: Savepoint, actor: User, field: str, value: object) -> Savepoint:
    before = {field: _plain(getattr(savepoint, field))}
    setattr(savepoint, field, value)
    savepoint.save(update_fields=[field])
    after = {field: _plain(value)}
    record(actor, "savepoint.change", str(savepoint), job=savepoint.job, before=before, after=after)
    return savepoint


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
