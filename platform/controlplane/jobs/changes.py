"""What changed in the fleet lately: starts, savepoints, failed checkpoints, failures, and the rate.

    Run, Savepoint, Checkpoint, RunFailure of visible jobs ─▶ events, newest first

Units    points in time are epoch ms; the rate is rows per second, over all those jobs.
Cost     four queries; the rate of more than DRAWN jobs is not added up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from controlplane.access.lookup import visible_jobs
from controlplane.jobs.models import Job, Run, RunFailure
from controlplane.metrics.contract import HOUR_MS, step_for
from controlplane.metrics.store import ENGINE, series_store
from controlplane.moments import epoch_ms, moment, now_ms
from controlplane.snapshots.lifecycle import labelled
from controlplane.snapshots.models import Checkpoint, Savepoint

HOURS = {"1": "1 h", "6": "6 h", "24": "24 h", "168": "7 days"}
EACH = 300
"""Events of each kind, the newest: more marks than a screen is wide."""
LONGEST = 300
"""Characters of a text."""
DRAWN = 60
POINTS = 200


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that happened to a job; a mark of the timeline."""

    id: str
    at_ms: int
    lane: str
    """dep, sav, ck or rs."""
    kind: str
    tone: str
    job: str
    title: str
    text: str
    page: str
    """Which page of the job says more."""


@dataclass(frozen=True, slots=True)
class Changes:
    """All of it."""

    hours: str
    from_ms: int
    to_ms: int
    events: tuple[Change, ...]
    rate: tuple[tuple[float, float], ...]
    rate_missing: str
    """Why no rate is drawn; empty when it is."""


def fleet_changes(user: User, hours: str) -> Changes:
    """What happened in the last hours."""
    to_ms = now_ms()
    from_ms = to_ms - int(hours) * HOUR_MS
    jobs = visible_jobs(user)
    events = [*_happened(jobs, from_ms, to_ms + 1), *_failed_checkpoints(jobs, moment(from_ms))]
    events.sort(key=_newest_first)
    names = list(jobs.values_list("name", flat=True)[: DRAWN + 1])
    few = len(names) <= DRAWN
    return Changes(
        hours=hours,
        from_ms=from_ms,
        to_ms=to_ms,
        events=tuple(events),
        rate=_rate(names, from_ms, to_ms) if few else (),
        rate_missing="" if few else f"the rate of more than {DRAWN} jobs is not added up",
    )


def job_changes(job: Job, from_ms: float, to_ms: float) -> tuple[Change, ...]:
    """Starts, savepoints and failures of one job in that time, newest first; three queries."""
    return tuple(sorted(_happened([job], from_ms, to_ms), key=_newest_first))


def _newest_first(change: Change) -> tuple[int, str]:
    return -change.at_ms, change.id


def _happened(jobs: Any, from_ms: float, to_ms: float) -> Iterator[Change]:
    when = moment(from_ms), moment(to_ms)
    yield from _starts(jobs, *when)
    yield from _savepoints(jobs, *when)
    yield from _failures(jobs, *when)


def _starts(jobs: Any, since: datetime, until: datetime) -> Iterator[Change]:
    runs = Run.objects.filter(
        job__in=jobs, purpose=Run.Purpose.LIVE, started_at__gte=since, started_at__lt=until
    )
    for run in runs.select_related("job", "version").order_by("-started_at")[:EACH]:
        name = run.job.name
        text = f"from {run.restored_path}" if run.restored_path else "with no state to restore"
        title = f"{name} v{run.version.number} started"
        yield _change(
            f"run-{run.pk}", run.started_at, "dep", "flag", "ink", name, title, text, "job"
        )


def _savepoints(jobs: Any, since: datetime, until: datetime) -> Iterator[Change]:
    ended = (Savepoint.Status.COMPLETED, Savepoint.Status.FAILED)
    found = Savepoint.objects.filter(
        job__in=jobs, created_at__gte=since, created_at__lt=until, status__in=ended
    )
    for one in found.select_related("job").order_by("-created_at")[:EACH]:
        failed = one.status == Savepoint.Status.FAILED
        kind, tone = ("x", "crit") if failed else ("diamond", "save")
        title = f"{one.job.name} savepoint {one.pk}{' failed' if failed else ''}"
        at, text = one.created_at, one.failure if failed else labelled(one)
        yield _change(
            f"sp-{one.pk}", at, "sav", kind, tone, one.job.name, title, text, "savepoints"
        )


def _failed_checkpoints(jobs: Any, since: datetime) -> Iterator[Change]:
    found = Checkpoint.objects.filter(
        run__job__in=jobs,
        run__purpose=Run.Purpose.LIVE,
        kind=Checkpoint.Kind.CHECKPOINT,
        status=Checkpoint.Status.FAILED,
        trigger_at__gte=since,
    )
    for one in found.select_related("run__job").order_by("-trigger_at")[:EACH]:
        name = one.run.job.name
        title = f"{name} checkpoint {one.engine_checkpoint_id} failed"
        key = f"ck-{one.pk}"
        yield _change(
            key, one.trigger_at, "ck", "x", "crit", name, title, one.failure, "checkpoints"
        )


def _failures(jobs: Any, since: datetime, until: datetime) -> Iterator[Change]:
    found = RunFailure.objects.filter(
        run__job__in=jobs, run__purpose=Run.Purpose.LIVE, at__gte=since, at__lt=until
    ).defer("trace", "echoes")
    for one in found.select_related("run__job").order_by("-at")[:EACH]:
        name = one.run.job.name
        title = f"{name} {'failed' if one.verdict else 'restarted'}: {one.name}"
        where = f" ({one.operator or one.task})" if one.operator or one.task else ""
        text = f"{one.sentence}{where}"
        yield _change(f"f-{one.pk}", one.at, "rs", "disc", "crit", name, title, text, "exceptions")


def _change(
    key: str,
    at: datetime,
    lane: str,
    kind: str,
    tone: str,
    job: str,
    title: str,
    text: str,
    page: str,
) -> Change:
    return Change(key, epoch_ms(at), lane, kind, tone, job, title, _cut(text), page)


def _cut(text: str) -> str:
    """What fits under a title; whole it stands on the page of the job."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


def _rate(names: Iterable[str], from_ms: int, to_ms: int) -> tuple[tuple[float, float], ...]:
    """Rows per second of these jobs together, by steps."""
    step, wanted = step_for(to_ms - from_ms, POINTS), list(names)
    if not wanted:
        return ()
    found = series_store().query(
        ENGINE,
        "job",
        "in",
        where={"job": wanted, "purpose": "live"},
        start_ms=from_ms,
        stop_ms=to_ms,
        step_ms=step,
    )
    total: defaultdict[float, float] = defaultdict(float)
    for series in found:
        for at, value in series.points:
            if not isinstance(value, str) and math.isfinite(value):
                total[at] += float(value)
    return tuple(sorted(total.items()))
