"""Runs the schedules that are due.

1. Find the schedules whose time has come.
2. Move each one's next time on, by compare-and-set: of two beats that find it, one gets it.
3. Start the savepoint, or note why not: the job does not run, or is busy.

Late     runs that were missed while the platform was down are not made up for: the next time is the
         first one after now, on the schedule's own grid.
Guarantee  a schedule's time is used at most once. A crash between 2 and 3 skips one savepoint.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.access.errors import Refused
from controlplane.jobs.models import RunState
from controlplane.operations.kinds.checks import live_run
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.snapshots.models import Savepoint, SavepointSchedule

Result = SavepointSchedule.Result


def run_due(now: datetime) -> int:
    """Run every schedule that is due; how many were."""
    due = SavepointSchedule.objects.filter(enabled=True, next_run_at__lte=now)
    return sum(_run(schedule, now) for schedule in due.select_related("job__cluster", "job__team"))


def next_after(planned: datetime, every_minutes: float, now: datetime) -> datetime:
    """The first time after `now` that is a whole number of intervals after `planned`."""
    interval = timedelta(minutes=every_minutes)
    missed = math.floor(max(now - planned, timedelta()) / interval)
    return planned + (missed + 1) * interval


def _run(schedule: SavepointSchedule, now: datetime) -> bool:
    following = next_after(schedule.next_run_at, schedule.every_minutes, now)
    mine = SavepointSchedule.objects.filter(
        pk=schedule.pk, enabled=True, next_run_at=schedule.next_run_at
    ).update(next_run_at=following, last_run_at=now)
    if not mine:
        return False
    operation, reason = _start(schedule, now)
    SavepointSchedule.objects.filter(pk=schedule.pk).update(
        last_result=Result.STARTED if operation else Result.SKIPPED,
        last_reason=reason[:500],
        last_operation=operation,
    )
    return True


def _start(schedule: SavepointSchedule, now: datetime) -> tuple[Operation | None, str]:
    run = live_run(schedule.job)
    if run is None or run.state != RunState.RUNNING:
        state = "not running" if run is None else run.state
        return None, f"{schedule.job.name} is {state}: a savepoint needs a running job"
    key = f"schedule-{schedule.pk}-{schedule.next_run_at.timestamp():.3f}"
    params = {
        "origin": Savepoint.Origin.SCHEDULED.value,
        "label": f"every {schedule.every_minutes:g} min",
    }
    try:
        with transaction.atomic():
            return start_operation("savepoint", schedule.job, None, params, key, now=now), ""
    except Refused as refused:
        return None, refused.message
