"""What people do with savepoints and their schedules.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.access.errors import Refused, conflict, invalid
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.backends.errors import EngineAway, EngineError
from controlplane.backends.registry import client_for
from controlplane.jobs.models import Job
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.snapshots.models import Savepoint, SavepointSchedule

MIN_MINUTES = 0.1
MAX_MINUTES = 525_600.0
MAX_SCHEDULES = 20
"""Of one job; nobody needs more, and each is a savepoint that is never deleted by itself."""


def request_savepoint(
    job: Job, actor: User, label: str = "", idempotency_key: str = ""
) -> Operation:
    """Take a savepoint now. Operator."""
    require(actor, job, Role.OPERATOR)
    params = {"label": label.strip()[:200], "origin": Savepoint.Origin.MANUAL.value}
    return start_operation("savepoint", job, actor, params, idempotency_key)


def import_savepoint(job: Job, actor: User, path: str, label: str = "") -> Savepoint:
    """Put a savepoint that lies somewhere into the catalogue; its manifest is read first."""
    require(actor, job, Role.OPERATOR)
    location = path.strip().rstrip("/")
    if not location.startswith(("/", "file://")) or "\0" in location:
        msg = f"savepoint path must be absolute: got {path[:100]!r}; give the folder's full path"
        raise invalid(msg, "path")
    try:
        summary = client_for(job.cluster).savepoint(location)
    except EngineAway as error:
        raise Refused(502, "engine", error.message) from error
    except EngineError as error:
        raise invalid(error.message, "path") from error
    now = timezone.now()
    try:
        with transaction.atomic():
            savepoint = Savepoint.objects.create(
                job=job,
                location=summary.location,
                origin=Savepoint.Origin.IMPORTED,
                label=label.strip()[:200],
                status=Savepoint.Status.COMPLETED,
                checkpoint_id=summary.checkpoint_id,
                event_time=summary.event_time,
                size_bytes=summary.size_bytes,
                source_positions=dict(summary.source_positions),
                completed_at=now,
                created_by=actor,
            )
            after = {"location": summary.location, "job_name": summary.job_name}
            record(actor, "savepoint.import", str(savepoint), job=job, after=after)
    except IntegrityError:
        msg = f"savepoint {summary.location} is in the catalogue of {job.name} already"
        raise conflict(msg) from None
    return savepoint


@transaction.atomic
def add_schedule(
    job: Job, actor: User, every_minutes: float, now: datetime | None = None
) -> SavepointSchedule:
    """Take a savepoint every so many minutes, the first after that time. Operator."""
    require(actor, job, Role.OPERATOR)
    check_interval(every_minutes)
    if job.schedules.count() >= MAX_SCHEDULES:
        msg = f"job {job.name} has {MAX_SCHEDULES} schedules already: delete one first"
        raise conflict(msg)
    first = (now or timezone.now()) + timedelta(minutes=every_minutes)
    schedule = SavepointSchedule.objects.create(
        job=job, every_minutes=every_minutes, next_run_at=first, created_by=actor
    )
    after = {"every_minutes": every_minutes}
    record(actor, "schedule.add", str(schedule), job=job, after=after)
    return schedule


@transaction.atomic
def set_schedule_enabled(
    schedule: SavepointSchedule, actor: User, *, enabled: bool, now: datetime | None = None
) -> SavepointSchedule:
    """Let a schedule rest, or go on from now. Operator."""
    require(actor, schedule.job, Role.OPERATOR)
    before = {"enabled": schedule.enabled}
    schedule.enabled = enabled
    schedule.next_run_at = (now or timezone.now()) + timedelta(minutes=schedule.every_minutes)
    schedule.save(update_fields=["enabled", "next_run_at"])
    after = {"enabled": enabled}
    record(actor, "schedule.change", str(schedule), job=schedule.job, before=before, after=after)
    return schedule


@transaction.atomic
def remove_schedule(schedule: SavepointSchedule, actor: User) -> None:
    """Delete a schedule; the savepoints that it took stay. Operator."""
    require(actor, schedule.job, Role.OPERATOR)
    before = {"every_minutes": schedule.every_minutes}
    record(actor, "schedule.remove", str(schedule), job=schedule.job, before=before)
    schedule.delete()


def check_interval(every_minutes: float) -> None:
    """Refuse an interval that is no number or out of range."""
    if not math.isfinite(every_minutes) or not MIN_MINUTES <= every_minutes <= MAX_MINUTES:
        msg = (
            f"interval must be between {MIN_MINUTES:g} and {MAX_MINUTES:,.0f} minutes: "
            f"got {every_minutes:g}"
        )
        raise invalid(msg, "every_minutes")
