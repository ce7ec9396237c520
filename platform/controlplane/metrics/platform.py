"""The control plane measures itself: what it does, how late it is, and what happened.

    database ──every 10 s──▶ `controlplane`   operations under way, the oldest that waits, engines
                           ▶ `operation`      one point for each that ended, at its end
                           ▶ `event`          deploys, replays, savepoints, failures, at their time

Units    seconds; times of points are those of what happened.
Guarantee  what happened is told again for an hour, at the same time and with the same tags: so it
           is one point, whatever was down meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q

from controlplane.backends.models import Cluster
from controlplane.jobs.models import Run, RunFailure
from controlplane.metrics.line_protocol import FieldValue, Point, tags_of
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.snapshots.models import Savepoint

TOLD_AGAIN = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
TEXT = 300
"""Characters of an event's sentence."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """One figure of the control plane, now."""

    name: str
    help: str
    value: float


def gauges(now: datetime) -> list[Gauge]:
    """How the control plane is, as far as its database knows."""
    operations = Operation.objects.filter(state__in=UNFINISHED)
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    due = operations.filter(free, not_before__lte=now).order_by("not_before").first()
    seen = Cluster.present.all()
    lags = [(now - at).total_seconds() for at in seen.values_list("last_seen", flat=True) if at]
    runs = dict(
        Run.objects.filter(purpose=Run.Purpose.LIVE, ended_at=None)
        .values_list("state")
        .annotate(Count("id"))
        .order_by()
    )
    return [
        Gauge("operations_unfinished", "Operations under way or waiting.", operations.count()),
        Gauge(
            "operation_queue_age_seconds",
            "How long the operation that has waited longest has been due, and no worker has it.",
            (now - due.not_before).total_seconds() if due else 0.0,
        ),
        Gauge("engines", "Engines that are watched.", seen.count()),
        Gauge(
            "engines_away",
            "Engines that do not answer.",
            seen.filter(status=Cluster.Status.AWAY).count(),
        ),
        Gauge(
            "collector_lag_seconds",
            "Since when the collector has not heard of the engine that it heard of longest ago.",
            max(lags, default=0.0),
        ),
        Gauge("jobs_running", "Live runs that run.", runs.get("RUNNING", 0)),
        Gauge(
            "jobs_not_running",
            "Live runs that have not ended and do not run.",
            sum(runs.values()) - runs.get("RUNNING", 0),
        ),
    ]


def platform_points(now: datetime) -> list[Point]:
    """All points of one look."""
    figures = {gauge.name: float(gauge.value) for gauge in gauges(now)}
    since = now - TOLD_AGAIN
    happened = (*_operations(since), *_starts(since), *_savepoints(since), *_failures(since))
    return [_point("controlplane", {}, figures, now), *happened]


def _operations(since: datetime) -> Iterator[Point]:
    for one in Operation.objects.filter(ended_at__gte=since).select_related("job"):
        assert one.ended_at is not None
        tags = {"kind": one.kind, "state": one.state, "job": one.job.name}
        took = (one.ended_at - one.created_at).total_seconds()
        yield _point("operation", tags, {"duration_seconds": took}, one.ended_at)


def _starts(since: datetime) -> Iterator[Point]:
    for run in Run.objects.filter(started_at__gte=since).select_related("job", "version"):
        kind = "deploy" if run.purpose == Run.Purpose.LIVE else "replay"
        title = f"{run.version} started" if kind == "deploy" else "Replay started"
        yield _event(run.job.name, kind, title, run.reason, run.started_at)


def _savepoints(since: datetime) -> Iterator[Point]:
    found = Savepoint.objects.filter(completed_at__gte=since).select_related("job")
    for one in found:
        assert one.completed_at is not None
        text = one.label or one.get_origin_display()
        yield _event(one.job.name, "savepoint", "Savepoint", text, one.completed_at)


def _failures(since: datetime) -> Iterator[Point]:
    for one in RunFailure.objects.filter(at__gte=since).select_related("run__job"):
        kind = "failure" if one.verdict else "restart"
        title = "Failed" if one.verdict else "Restarted"
        yield _event(one.run.job.name, kind, title, one.sentence, one.at)


def _event(job: str, kind: str, title: str, text: str, at: datetime) -> Point:
    tags = {"job": job, "kind": kind}
    return _point("event", tags, {"title": title, "text": text[:TEXT] or title}, at)


def _point(
    measurement: str, tags: Mapping[str, str], fields: Mapping[str, FieldValue], at: datetime
) -> Point:
    epoch = datetime(1970, 1, 1, tzinfo=at.tzinfo)
    nanos = (at - epoch) // MICROSECOND * 1_000
    return Point(measurement, tags_of(tags.items()), tuple(fields.items()), nanos)
