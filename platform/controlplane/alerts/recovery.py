"""How far a job's recovery point is behind its objective: now, and over what is kept.

    newest restorable state ────────────── age ──────────────▶ now
                            ── objective ──▶── what counts ──▶

Units    seconds beyond the objective; 0 while it is met, while the job is not wanted to run, and
         while nobody has set an objective.
Missing  a job that has nothing to start from is as far behind as its run is old; one that never ran
         is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime

from controlplane.jobs.models import Job
from controlplane.moments import epoch_ms, moment
from controlplane.snapshots.models import Checkpoint, Savepoint
from controlplane.snapshots.recovery_point import (
    RecoveryPoint,
    State,
    objective_of,
    recovery_points,
)

MOST_ROWS = 20_000


def seconds_behind(
    jobs: Sequence[Job], started: Mapping[int, datetime], now: datetime
) -> dict[int, float | None]:
    """Of each job; `started` is when its newest run began."""
    return {
        key: _behind(point, started.get(key), now)
        for key, point in recovery_points(jobs, now).items()
    }


def _behind(point: RecoveryPoint, started: datetime | None, now: datetime) -> float | None:
    if point.objective is None or point.state is State.RESTING:
        return 0.0
    age = point.age
    if age is None:
        if started is None:
            return None
        age = now - started
    return max(0.0, (age - point.objective).total_seconds())


def behind_over(jobs: Sequence[Job], start_ms: int, grid: range) -> dict[int, dict[int, float]]:
    """At each look, against the objective of today; before the first state that is kept: unknown.

    Whether a job was wanted to run then is not kept: a time in which it rested counts as well.
    """
    objectives = {job.pk: span for job in jobs if (span := objective_of(job)) is not None}
    times = _times(list(objectives), start_ms)
    return {
        key: _behind_at(times.get(key, []), span.total_seconds(), grid)
        for key, span in objectives.items()
    }


def _behind_at(times: Sequence[int], objective_s: float, grid: range) -> dict[int, float]:
    places = ((look, bisect_right(times, look) - 1) for look in grid)
    return {
        look: max(0.0, (look - times[place]) / 1_000 - objective_s)
        for look, place in places
        if place >= 0
    }


def _times(job_ids: Sequence[int], start_ms: int) -> dict[int, list[int]]:
    """When states were saved that each job could start from, oldest first."""
    since = moment(start_ms)
    done = Checkpoint.objects.filter(
        run__job__in=job_ids,
        run__purpose="live",
        status=Checkpoint.Status.COMPLETED,
        trigger_at__gte=since,
    )
    saved = Savepoint.objects.filter(job__in=job_ids, taken_at__gte=since)
    rows = [
        *done.order_by("-trigger_at").values_list("run__job", "trigger_at")[:MOST_ROWS],
        *saved.order_by("-taken_at").values_list("job", "taken_at")[:MOST_ROWS],
    ]
    found: dict[int, list[int]] = {}
    for key, at in rows:
        if at is not None:
            found.setdefault(key, []).append(epoch_ms(at))
    return {key: sorted(times) for key, times in found.items()}
