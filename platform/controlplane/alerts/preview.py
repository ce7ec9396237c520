"""When a rule would have fired: the machine of `machine.py` over what is kept of the last days.

Missing  a measure of which no history is kept has no preview, and says so. Where nothing was
         written the value is unknown.
Cost     a look every STEP; one query of the series store, or one of the database.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.alerts.dropped import over_an_hour, rises_between
from controlplane.alerts.machine import Life, Phase, judge, step
from controlplane.alerts.measures import EVERYWHERE, ONE_JOB
from controlplane.alerts.models import AlertRule
from controlplane.alerts.recovery import behind_over
from controlplane.jobs.models import Job, RunFailure
from controlplane.metrics.store import ENGINE, series_store
from controlplane.moments import epoch_ms, moment
from controlplane.snapshots.models import Checkpoint, Savepoint

DAYS = 7
STEP = timedelta(minutes=1)
HOUR_MS = 3_600_000
MOST_JOBS = 50
MOST_ROWS = 20_000
Measure = AlertRule.Measure

_FIELDS = {Measure.WATERMARK_DELAY: ("delay_ms", 1_000.0), Measure.BACKPRESSURE: ("bp", 1.0)}
"""Field of the series store, and how many of its units are one of the measure's."""

_NO_HISTORY = {
    Measure.RECOVERY_POINT: "none of these jobs has a recovery-point objective: set one in its "
    "settings",
    Measure.SAVEPOINT_UNREADABLE: "of a savepoint only the last verification is kept, so it is not "
    "known how many could be read before",
    Measure.POINTS_DROPPED: "nobody has written how many points were dropped",
}
"""Why nothing is known of a time that is over."""

Values = Mapping[int, float]
"""Epoch ms of a look to the value then."""


@dataclass(frozen=True, slots=True)
class Firing:
    """One time that it would have fired."""

    job: str
    from_ms: int
    until_ms: int | None
    """None: it would fire now."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rule would have done."""

    firings: tuple[Firing, ...]
    days: int = DAYS
    unknown: str = ""
    """Why nothing can be said."""


def preview(
    jobs: Sequence[Job], measure: Measure, threshold: float, for_seconds: int, now: datetime
) -> Preview:
    """Run the rule over the last days of these jobs."""
    if measure in EVERYWHERE and len(jobs) > 1:
        return Preview((), unknown=ONE_JOB)
    chosen = jobs[:MOST_JOBS]
    start_ms, end_ms = epoch_ms(now - timedelta(days=DAYS)), epoch_ms(now)
    values = _history(chosen, measure, start_ms, end_ms)
    if values is None:
        return Preview((), unknown=_NO_HISTORY.get(measure, "no history is kept of this measure"))
    found: list[Firing] = []
    for job in chosen:
        found += _play(job.name, values.get(job.pk, {}), threshold, for_seconds, start_ms, end_ms)
    return Preview(tuple(sorted(found, key=lambda one: (-one.from_ms, one.job))))


def _play(
    job: str, values: Values, threshold: float, for_seconds: int, start_ms: int, end_ms: int
) -> Iterable[Firing]:
    if not values:
        return
    life: Life | None = None
    hold = timedelta(seconds=for_seconds)
    for at_ms in _grid(start_ms, end_ms):
        after = step(life, judge(values.get(at_ms), threshold), moment(at_ms), hold)
        if after is not None and after.phase is Phase.RESOLVED:
            yield Firing(job, epoch_ms(after.fired_at or after.since), at_ms)
            after = None
        life = after
    if life is not None and life.phase is Phase.FIRING:
        yield Firing(job, epoch_ms(life.fired_at or life.since), None)


def _grid(start_ms: int, end_ms: int) -> range:
    step_ms = STEP // timedelta(milliseconds=1)
    return range(start_ms - start_ms % step_ms, end_ms + 1, step_ms)


def _history(
    jobs: Sequence[Job], measure: Measure, start_ms: int, end_ms: int
) -> Mapping[int, Values] | None:
    """Values of each job, at the looks at which they are known."""
    if measure in _FIELDS:
        return _series(jobs, *_FIELDS[measure], start_ms, end_ms)
    grid = _grid(start_ms, end_ms)
    match measure:
        case Measure.CHECKPOINT_AGE | Measure.CHECKPOINTS_FAILED:
            return {
                key: _of_checkpoints(rows, measure, grid)
                for key, rows in _checkpoints(jobs, start_ms)
            }
        case Measure.RESTARTS:
            return {key: _in_the_last_hour(times, grid) for key, times in _restarts(jobs, start_ms)}
        case Measure.SAVEPOINT_AGE:
            return {key: _ages(times, grid) for key, times in _savepoints(jobs)}
        case Measure.RECOVERY_POINT:
            return behind_over(jobs, start_ms, grid) or None
        case Measure.POINTS_DROPPED:
            rises = rises_between(start_ms, end_ms)
            return None if rises is None else {job.pk: over_an_hour(rises, grid) for job in jobs}
        case _:
            return None


def _series(
    jobs: Sequence[Job], field: str, unit: float, start_ms: int, end_ms: int
) -> dict[int, dict[int, float]]:
    names = {job.name: job.pk for job in jobs}
    found: dict[int, dict[int, float]] = {}
    lines = series_store().query(
        ENGINE,
        "job",
        field,
        where={"job": list(names), "purpose": "live"},
        start_ms=start_ms,
        stop_ms=end_ms,
        step_ms=STEP // timedelta(milliseconds=1),
        aggregate="max",
        limit=MOST_ROWS,
    )
    for line in lines:
        known = found.setdefault(names[line.tags["job"]], {})
        for at, value in line.points:
            if isinstance(value, int | float):
                known[int(at)] = max(known.get(int(at), 0.0), float(value) / unit)
    return found


def _grouped(rows: Iterable[tuple[int, Any]]) -> Iterable[tuple[int, list[Any]]]:
    found: dict[int, list[Any]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found.items()


def _checkpoints(jobs: Sequence[Job], start_ms: int) -> Iterable[tuple[int, list[Any]]]:
    rows = Checkpoint.objects.filter(
        run__job__in=jobs, run__purpose="live", trigger_at__gte=moment(start_ms)
    ).exclude(status=Checkpoint.Status.IN_PROGRESS)
    newest = rows.order_by("-trigger_at").values_list("run__job", "trigger_at", "status")
    oldest_first = reversed(newest[:MOST_ROWS])
    return _grouped((key, (epoch_ms(at), status)) for key, at, status in oldest_first)


def _of_checkpoints(
    rows: Sequence[tuple[int, str]], measure: Measure, grid: range
) -> dict[int, float]:
    times, ages, failed = [], [], []
    last, streak = 0, 0
    for at, status in rows:
        streak = streak + 1 if status == Checkpoint.Status.FAILED else 0
        last = at if streak == 0 else last
        times.append(at)
        ages.append(last)
        failed.append(streak)
    values = {}
    for look in grid:
        place = bisect_right(times, look) - 1
        if place < 0:
            continue
        if measure == Measure.CHECKPOINTS_FAILED:
            values[look] = float(failed[place])
        elif ages[place]:
            values[look] = (look - ages[place]) / 1_000
    return values


def _restarts(jobs: Sequence[Job], start_ms: int) -> Iterable[tuple[int, list[Any]]]:
    since = moment(start_ms - HOUR_MS)
    rows = RunFailure.objects.filter(run__job__in=jobs, run__purpose="live", at__gte=since)
    newest = rows.order_by("-at").values_list("run__job", "at")[:MOST_ROWS]
    return _grouped((key, epoch_ms(at)) for key, at in reversed(newest))


def _in_the_last_hour(times: Sequence[int], grid: range) -> dict[int, float]:
    return {
        look: float(bisect_right(times, look) - bisect_right(times, look - HOUR_MS))
        for look in grid
    }


def _savepoints(jobs: Sequence[Job]) -> Iterable[tuple[int, list[Any]]]:
    rows = Savepoint.objects.filter(job__in=jobs).exclude(completed_at=None)
    newest = rows.order_by("-completed_at").values_list("job", "completed_at")[:MOST_ROWS]
    return _grouped((key, epoch_ms(at)) for key, at in reversed(newest))


def _ages(times: Sequence[int], grid: range) -> dict[int, float]:
    places = ((look, bisect_right(times, look) - 1) for look in grid)
    return {look: (look - times[place]) / 1_000 for look, place in places if place >= 0}
