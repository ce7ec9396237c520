"""What people do with the schedules of savepoints.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from controlplane.access.errors import conflict
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.jobs.models import Job
from controlplane.snapshots.models import SavepointSchedule
from controlplane.snapshots.schedule_options import (
    ScheduleOptions,
    checked_values,
    first_time,
    timing_of,
)

MAX_SCHEDULES = 20
"""Of one job; nobody needs more."""


@transaction.atomic
def add_schedule(
    job: Job,
    actor: User,
    every_minutes: float | None = None,
    now: datetime | None = None,
    options: ScheduleOptions = ScheduleOptions(),  # noqa: B008 - it is frozen
) -> SavepointSchedule:
    """Take savepoints every so many minutes, or when `options.cron` says. Operator."""
    require(actor, job, Role.OPERATOR)
    values = checked_values(every_minutes, options)
    if job.schedules.count() >= MAX_SCHEDULES:
        msg = f"job {job.name} has {MAX_SCHEDULES} schedules already: delete one first"
        raise conflict(msg)
    at = now or timezone.now()
    schedule = SavepointSchedule(job=job, created_by=actor, planned_at=at, next_run_at=at, **values)
    first_time(schedule, at)
    schedule.save()
    _plan(schedule, at)
    record(actor, "schedule.add", str(schedule), job=job, after=values)
    return schedule


@transaction.atomic
def set_schedule_enabled(
    schedule: SavepointSchedule, actor: User, *, enabled: bool, now: datetime | None = None
) -> SavepointSchedule:
    """Let a schedule rest, or go on from now. Operator."""
    require(actor, schedule.job, Role.OPERATOR)
    before = {"enabled": schedule.enabled}
    schedule.enabled = enabled
    schedule.save(update_fields=["enabled"])
    _plan(schedule, now or timezone.now())
    after = {"enabled": enabled}
    record(actor, "schedule.change", str(schedule), job=schedule.job, before=before, after=after)
    return schedule


@transaction.atomic
def remove_schedule(schedule: SavepointSchedule, actor: User) -> None:
    """Delete a schedule; the savepoints that it took stay. Operator."""
    require(actor, schedule.job, Role.OPERATOR)
    before = {"when": schedule.words}
    record(actor, "schedule.remove", str(schedule), job=schedule.job, before=before)
    schedule.delete()


def _plan(schedule: SavepointSchedule, now: datetime) -> None:
    """Its next run is the first one after now; the jitter is drawn from its key."""
    schedule.planned_at = first_time(schedule, now)
    schedule.next_run_at = timing_of(schedule).due(schedule.planned_at)
    schedule.save(update_fields=["planned_at", "next_run_at"])
