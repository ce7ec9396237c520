"""What rules look at, of every job at once.

    checkpoint_age        s since the last completed checkpoint of a running job began
    checkpoints_failed    failed ones after the last completed one
    watermark_delay       s by which the watermark is behind the newest event
    restarts              in the last hour
    backpressure          % of time in which the subtask held up most waits
    savepoint_age         s since the last savepoint was complete
    replay_stalled        s in which a running replay's event time has not moved
    not_running           s since which a job that is wanted does not run
    recovery_point        s by which the newest restorable state is older than the job's objective
    savepoint_unreadable  complete savepoints that are damaged, cannot be read, or are gone
    points_dropped        in the last hour, of the whole installation

Missing  what is not known of a job is None: of one that does not run only restarts, savepoints,
         recovery_point and not_running are.
Cost     a fixed number of queries, however many jobs there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from controlplane.alerts.dropped import dropped_in_the_last_hour
from controlplane.alerts.models import AlertRule
from controlplane.alerts.recovery import seconds_behind
from controlplane.jobs.models import Job, RunFailure
from controlplane.jobs.queries import newest_runs
from controlplane.live.queries import latest_fleet
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Checkpoint, Savepoint
from controlplane.snapshots.usable import BAD

HOUR = timedelta(hours=1)
RUNNING = "RUNNING"
Measure = AlertRule.Measure
Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Unit:
    """How a measure is written."""

    sign: str
    kind: str
    """Format of the pages."""
    hint: float
    """A threshold to begin with."""


UNITS = {
    Measure.CHECKPOINT_AGE: Unit("s", "dur", 300),
    Measure.CHECKPOINTS_FAILED: Unit("in a row", "whole", 3),
    Measure.WATERMARK_DELAY: Unit("s", "dur", 60),
    Measure.RESTARTS: Unit("an hour", "whole", 3),
    Measure.BACKPRESSURE: Unit("%", "percent", 80),
    Measure.SAVEPOINT_AGE: Unit("s", "dur", 86_400),
    Measure.REPLAY_STALLED: Unit("s", "dur", 300),
    Measure.NOT_RUNNING: Unit("s", "dur", 60),
    Measure.RECOVERY_POINT: Unit("s", "dur", 1),
    Measure.SAVEPOINT_UNREADABLE: Unit("savepoints", "whole", 1),
    Measure.POINTS_DROPPED: Unit("points", "whole", 1),
}

EVERYWHERE = frozenset({Measure.POINTS_DROPPED})
"""Of the whole installation: the same whichever job is asked about."""
ONE_JOB = "points are counted for the whole installation, not for each job: choose one job"
"""Why a rule about one of those is not one of a team."""


def shown(unit: Unit, value: float | None) -> float | None:
    """The value as its format takes it: durations are formatted from ms."""
    return value * 1_000 if value is not None and unit.kind == "dur" else value


def measure_all(job_ids: Iterable[int], now: datetime) -> dict[int, Values]:
    """Every measure of each job, but for those of the whole installation."""
    ids = list(job_ids)
    runs = {run["job_id"]: run for run in _runs(ids)}
    jobs = list(Job.objects.filter(pk__in=ids))
    wanted = {job.pk for job in jobs if job.desired_state == Job.Desired.RUNNING}
    figures = latest_fleet(ids)
    restarts = _counts(
        RunFailure.objects.filter(run__job__in=ids, run__purpose="live", at__gte=now - HOUR)
    )
    saved = dict(
        Savepoint.objects.filter(job__in=ids, status=Savepoint.Status.COMPLETED)
        .values_list("job")
        .annotate(Max("completed_at"))
    )
    stalled, unreadable = _stalled(ids), _unreadable(ids)
    behind = seconds_behind(jobs, {key: run["started_at"] for key, run in runs.items()}, now)
    return {
        job_id: _values(
            runs.get(job_id),
            figures.get(str(job_id), {}),
            now,
            wanted=job_id in wanted,
            restarts=restarts.get(job_id, 0),
            saved=saved.get(job_id),
            stalled=stalled.get(job_id),
        )
        | {
            Measure.RECOVERY_POINT: behind.get(job_id),
            Measure.SAVEPOINT_UNREADABLE: unreadable.get(job_id, 0),
        }
        for job_id in ids
    }


def _values(
    run: Mapping[str, Any] | None,
    figures: Mapping[str, Any],
    now: datetime,
    *,
    wanted: bool,
    restarts: int,
    saved: datetime | None,
    stalled: float | None,
) -> dict[str, float | None]:
    runs = run is not None and run["state"] == RUNNING
    down = None if run is None or runs else _seconds(now, run["state_since"])
    return {
        Measure.CHECKPOINT_AGE: _seconds(now, run["last"] or run["started_at"])
        if run and runs
        else None,
        Measure.CHECKPOINTS_FAILED: run["failed"] if run and runs else None,
        Measure.WATERMARK_DELAY: _over(figures.get("delay_ms"), 1_000) if runs else None,
        Measure.RESTARTS: restarts,
        Measure.BACKPRESSURE: figures.get("bp") if runs else None,
        Measure.SAVEPOINT_AGE: _seconds(now, saved),
        Measure.REPLAY_STALLED: stalled,
        Measure.NOT_RUNNING: 0.0 if runs or not wanted else down,
    }


def _runs(job_ids: list[int]) -> Iterable[Mapping[str, Any]]:
    """The newest live run of each job, with its last completed checkpoint and failures after it."""
    of_run = Checkpoint.objects.filter(run=OuterRef("pk")).order_by("-engine_checkpoint_id")
    done = of_run.filter(status=Checkpoint.Status.COMPLETED)
    failed = Checkpoint.objects.filter(
        run=OuterRef("pk"),
        status=Checkpoint.Status.FAILED,
        engine_checkpoint_id__gt=Coalesce(OuterRef("done"), -1),
    )
    counted = failed.order_by().values("run").annotate(n=Count("pk")).values("n")
    return (
        newest_runs(job_ids)
        .annotate(
            done=Subquery(done.values("engine_checkpoint_id")[:1]),
            last=Subquery(done.values("trigger_at")[:1]),
        )
        .annotate(failed=Coalesce(Subquery(counted), 0))
        .values("job_id", "state", "state_since", "started_at", "last", "failed")
    )


def measure_everywhere(measures: Iterable[str], now: datetime) -> Values:
    """Those of these measures that are of the whole installation."""
    if Measure.POINTS_DROPPED not in measures:
        return {}
    return {Measure.POINTS_DROPPED: dropped_in_the_last_hour(now)}


def _counts(failures: Any) -> dict[int, int]:
    return dict(failures.values_list("run__job").annotate(Count("pk")))


def _stalled(job_ids: list[int]) -> dict[int, float]:
    """How long the replays that run have not moved; of several, the worst."""
    open_ones = Replay.objects.filter(job__in=job_ids, status=Replay.Status.REPLAYING)
    found: dict[int, float] = {}
    for job_id, history in open_ones.values_list("job_id", "history"):
        found[job_id] = max(found.get(job_id, 0.0), stood_still(history))
    return found


def _unreadable(job_ids: list[int]) -> dict[int, int]:
    bad = Q(verdict__in=BAD) | Q(missing_since__isnull=False)
    found = Savepoint.objects.filter(bad, job__in=job_ids, status=Savepoint.Status.COMPLETED)
    return dict(found.order_by().values_list("job").annotate(Count("pk")))


def stood_still(history: list[list[float | None]]) -> float:
    """Seconds since the event time of a replay's chart moved last.

    >>> stood_still([[0, 10, 50], [1_000, 20, 50], [61_000, 20, 50]])
    60.0
    """
    if not history:
        return 0.0
    wall, event = history[-1][0] or 0.0, history[-1][1]
    for at, position, *_ in reversed(history):
        if position != event:
            break
        since = at or 0.0
    return (wall - since) / 1_000


def _seconds(now: datetime, then: datetime | None) -> float | None:
    return None if then is None else max(0.0, (now - then).total_seconds())


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit
