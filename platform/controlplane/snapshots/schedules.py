"""Runs the schedules that are due.

1. Find the schedules whose time has come.
2. In one transaction, move the next time on by compare-and-set and start the savepoint, or note why
   not: the job does not run, is busy, is unhealthy or has not moved, or the time is long past.

Late     runs that were missed while the platform was down are not made up for one by one: at most
         one of them runs now, when the schedule says so. The next time is the first one after now.
Guarantee  of two beats that find a schedule one gets it, and each of its times starts one savepoint
           or leaves a reason, also when a beat is killed.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.access.errors import Refused
from controlplane.jobs.health import live_run
from controlplane.jobs.models import Run, RunState
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.moments import epoch_ms
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.snapshots.models import Checkpoint, Savepoint, SavepointSchedule
from controlplane.snapshots.schedule_options import timing_of

log = logging.getLogger(__name__)

Result = SavepointSchedule.Result

LATE_AFTER = timedelta(minutes=1)
"""A beat that is busy is a few seconds late; after a minute the platform was down."""


def run_due(now: datetime) -> int:
    """Run every schedule that is due; how many were."""
    due = SavepointSchedule.objects.filter(enabled=True, next_run_at__lte=now)
    return sum(_run(schedule, now) for schedule in due.select_related("job__cluster", "job__team"))


def _run(schedule: SavepointSchedule, now: datetime) -> bool:
    following, reason = _following(schedule, now), _why_not(schedule, now)
    with transaction.atomic():
        mine = SavepointSchedule.objects.filter(
            pk=schedule.pk, enabled=True, next_run_at=schedule.next_run_at
        )
        if not mine.update(last_run_at=now, **following):
            return False
        operation, reason = (None, reason) if reason else _start(schedule, now)
        SavepointSchedule.objects.filter(pk=schedule.pk).update(
            last_result=Result.STARTED if operation else Result.SKIPPED,
            last_reason=reason[:500],
            last_operation=operation,
        )
    return True


def _following(schedule: SavepointSchedule, now: datetime) -> dict[str, Any]:
    """Its next time; one that has none any more, or whose time zone is gone, rests."""
    try:
        timing = timing_of(schedule)
        planned = timing.after(schedule.planned_at, now)
    except ValueError as error:
        log.warning("schedule %s rests: %s", schedule.pk, error)
        return {"enabled": False}
    if planned is None:
        return {"enabled": False}
    return {"planned_at": planned, "next_run_at": timing.due(planned)}


def _why_not(schedule: SavepointSchedule, now: datetime) -> str:
    """Why this run is left out, in one sentence; empty when it is not."""
    late = now - schedule.next_run_at
    if schedule.late == SavepointSchedule.Late.SKIP and late > LATE_AFTER:
        return f"the platform was not there when it was due, {_words(late)} ago"
    run = live_run(schedule.job)
    if run is None or run.state != RunState.RUNNING:
        state = "not running" if run is None else run.state
        return f"{schedule.job.name} is {state}: a savepoint needs a running job"
    if schedule.skip_unhealthy and (failure := _unhealthy(run)):
        return f"{schedule.job.name} is unhealthy: {failure}"
    if schedule.skip_unchanged and (position := _unchanged(schedule)):
        return f"nothing has changed since the newest savepoint: event time stands at {position}"
    return ""


def _unhealthy(run: Run) -> str:
    newest = run.checkpoints.filter(kind=Checkpoint.Kind.CHECKPOINT).exclude(
        status=Checkpoint.Status.IN_PROGRESS
    )
    last = newest.order_by("-trigger_at", "-engine_checkpoint_id").first()
    if last is None or last.status != Checkpoint.Status.FAILED:
        return ""
    return last.failure or f"checkpoint {last.engine_checkpoint_id} failed"


def _unchanged(schedule: SavepointSchedule) -> str:
    """The event time that stands still; empty when it moves, or nobody knows."""
    newest = schedule.job.savepoints.filter(status=Savepoint.Status.COMPLETED).first()
    live_ms = latest(topics.job(schedule.job_id)).get("event_ms")
    if newest is None or newest.event_time is None or live_ms is None:
        return ""
    same = epoch_ms(newest.event_time) == int(live_ms)
    return f"{newest.event_time:%Y-%m-%d %H:%M:%S} UTC" if same else ""


def _start(schedule: SavepointSchedule, now: datetime) -> tuple[Operation | None, str]:
    key = f"schedule-{schedule.pk}-{schedule.next_run_at.timestamp():.3f}"
    params = {"origin": Savepoint.Origin.SCHEDULED.value, "label": schedule.words}
    try:
        with transaction.atomic():
            return start_operation("savepoint", schedule.job, None, params, key, now=now), ""
    except Refused as refused:
        return None, refused.message


def _words(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
