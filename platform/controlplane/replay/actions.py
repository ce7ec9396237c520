"""What people do with replays, and what the collector tells of them.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from controlplane.access.errors import Refused, conflict, invalid
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.backends.errors import EngineAway, EngineError
from controlplane.backends.registry import client_for
from controlplane.jobs.models import Job, JobVersion
from controlplane.jobs.settings import checked_parallelism
from controlplane.moments import epoch_ms
from controlplane.operations.models import Operation
from controlplane.operations.start import key_of, start_operation
from controlplane.replay import lifecycle, progress
from controlplane.replay.models import OPEN, Difference, Replay
from controlplane.replay.preflight import check_fit
from controlplane.replay.progress import Progress, Sample
from controlplane.snapshots.models import Savepoint

DRAWN_AFTER = timedelta(minutes=1)
MAX_OPEN = 10
"""Replays of one job at a time: each needs slots of its own, and nobody can follow more."""


def start_replay(
    savepoint: Savepoint,
    version: JobVersion,
    actor: User,
    parallelism: int,
    idempotency_key: str = "",
    *,
    until: datetime | None = None,
    discards: bool = False,
    read_limit: float | None = None,
    drop: Collection[str] = (),
) -> tuple[Replay, Operation]:
    """Replay `version` from `savepoint` beside the live job. Operator.

    `until`: the event time at which it ends; `discards`: whether its sinks write nothing;
    `read_limit`: rows per second from the moment that every task runs; `drop`: state (uid, or
    uid/state) that may be left behind.
    """
    job = savepoint.job
    require(actor, job, Role.OPERATOR)
    check_fit(savepoint, version)
    subtasks = checked_parallelism(parallelism)
    check_until(savepoint, until)
    _check_limit(read_limit)
    left_behind = sorted(set(drop))
    with transaction.atomic():
        if earlier := _earlier(job, actor, idempotency_key):
            return earlier
        if job.replays.filter(status__in=OPEN).count() >= MAX_OPEN:
            msg = f"job {job.name} has {MAX_OPEN} replays going on: abandon one first"
            raise conflict(msg)
        wishes = {"until": until, "discards": discards, "read_limit": read_limit}
        replay = _create(actor, savepoint, version, left_behind, parallelism=subtasks, **wishes)
        params: dict[str, Any] = {"replay": replay.pk, "version": version.pk}
        params |= {"savepoint": savepoint.pk, "drop": left_behind}
        operation = start_operation("start_replay", job, actor, params, idempotency_key)
    return replay, operation


def abandon_replay(replay: Replay, actor: User, idempotency_key: str = "") -> Operation:
    """End a replay for good; what it wrote beside the targets stays. Operator."""
    require(actor, replay.job, Role.OPERATOR)
    params = {"replay": replay.pk}
    return start_operation("abandon_replay", replay.job, actor, params, idempotency_key)


def limit_replay(replay: Replay, actor: User, rows_per_second: float | None) -> None:
    """Let it read at most so fast; None: as fast as it can. Operator."""
    _check_limit(rows_per_second)
    _read_at(replay, actor, "replay.limit", read_limit=rows_per_second)


def pause_replay(replay: Replay, actor: User, *, paused: bool) -> None:
    """Let it read nothing for now, or go on; the limit then holds again. Operator."""
    _read_at(replay, actor, "replay.pause" if paused else "replay.resume", paused=paused)


def _read_at(replay: Replay, actor: User, name: str, **values: Any) -> None:
    """Ask the engine first: what it refuses is not written down."""
    require(actor, replay.job, Role.OPERATOR)
    if replay.status not in (Replay.Status.REPLAYING, Replay.Status.CAUGHT_UP):
        msg = f"{replay} does not read: it is {replay.get_status_display().lower()}"
        raise conflict(msg)
    before = {key: getattr(replay, key) for key in values}
    for key, value in values.items():
        setattr(replay, key, value)
    _ask_for_limit(replay)
    with transaction.atomic():
        replay.save(update_fields=list(values))
        record(actor, name, str(replay), job=replay.job, before=before, after=values)
        lifecycle.tell(replay)


def _ask_for_limit(replay: Replay) -> None:
    if replay.run is None:
        return
    limit = 0.0 if replay.paused else replay.read_limit
    try:
        client_for(replay.job.cluster).limit_reading(replay.run.engine_job_id, limit)
    except EngineAway as error:
        raise Refused(502, "engine", error.message) from error
    except EngineError as error:
        raise conflict(error.message) from error


def promote_replay(replay: Replay, actor: User, idempotency_key: str = "") -> Operation:
    """Let its version take the place of the live one, with what it has corrected. Operator."""
    require(actor, replay.job, Role.OPERATOR)
    if open_ones := Difference.objects.filter(output__replay=replay, accepted_at=None).count():
        msg = (
            f"{replay} cannot be promoted: {open_ones} kinds of differences are not accepted; "
            "accept those that the new version intends"
        )
        raise Refused(409, "differences", msg)
    params = {"replay": replay.pk, "version": replay.version_id}
    return start_operation("promote_replay", replay.job, actor, params, idempotency_key)


@transaction.atomic
def accept_difference(difference: Difference, actor: User) -> None:
    """Say that the new version intends these differences. Operator."""
    replay = difference.output.replay
    require(actor, replay.job, Role.OPERATOR)
    waiting = Difference.objects.filter(pk=difference.pk, accepted_at=None)
    if waiting.update(accepted_by=actor, accepted_at=timezone.now()):
        after = {"difference": str(difference), "rows": difference.rows}
        record(actor, "replay.accept", str(replay), job=replay.job, after=after)


def rollback_replay(replay: Replay, actor: User, idempotency_key: str = "") -> Operation:
    """Let the version before take its place again, with its outputs. Operator."""
    require(actor, replay.job, Role.OPERATOR)
    params = {"replay": replay.pk, "version": replay.version_id}
    return start_operation("rollback_replay", replay.job, actor, params, idempotency_key)


@transaction.atomic
def record_sample(
    replay: Replay,
    wall: datetime,
    event_time: datetime | None,
    live_event_time: datetime | None,
    pending_rows: int | None = None,
    rate: float | None = None,
) -> Progress:
    """Keep where replay and live job stood, and work out how it is doing. For the collector."""
    fresh = Replay.objects.select_for_update().select_related("job").get(pk=replay.pk)
    if fresh.until is not None and live_event_time is not None:
        live_event_time = min(live_event_time, fresh.until)  # that is how far it will go
    sample = Sample(epoch_ms(wall), epoch_ms(event_time), epoch_ms(live_event_time), pending_rows)
    samples = [*map(_sample, fresh.samples), sample][-progress.SAMPLES_KEPT :]
    found = progress.assess(samples)
    _keep(fresh, samples, found, wall, event_time, live_event_time)
    if found.caught_up and fresh.until is None:
        lifecycle.caught_up(fresh, wall)
    _tell(fresh, sample, found, rate)
    return found


def _earlier(job: Job, actor: User, idempotency_key: str) -> tuple[Replay, Operation] | None:
    """What the same wish began before."""
    if not idempotency_key:
        return None
    key = key_of(actor, idempotency_key)
    same = Operation.objects.filter(idempotency_key=key, job=job, kind="start_replay").first()
    return (Replay.objects.get(pk=same.params["replay"]), same) if same else None


def _check_limit(rows_per_second: float | None) -> None:
    if rows_per_second is not None and not 0 < rows_per_second < float("inf"):
        msg = f"read limit must be rows per second, more than 0: got {rows_per_second}"
        raise invalid(msg, "rows_per_second")


def check_until(savepoint: Savepoint, until: datetime | None) -> None:
    """Refuse an end that lies before the beginning."""
    begin = savepoint.event_time
    if until is not None and begin is not None and until <= begin:
        msg = (
            f"a replay from savepoint {savepoint.pk} cannot end at {until:%Y-%m-%d %H:%M} UTC: "
            f"the savepoint is at {begin:%Y-%m-%d %H:%M}; give a later time"
        )
        raise invalid(msg, "until")


def _create(
    actor: User, savepoint: Savepoint, version: JobVersion, drop: list[str], **wishes: Any
) -> Replay:
    """A replay with the next number."""
    job = savepoint.job
    newest = Replay.objects.aggregate(newest=Max("number"))["newest"] or 0
    replay = Replay.objects.create(
        number=newest + 1,
        job=job,
        savepoint=savepoint,
        version=version,
        status=Replay.Status.STARTING,
        event_time_start=savepoint.event_time,
        created_by=actor,
        **wishes,
    )
    until = wishes["until"]
    after = {"savepoint": savepoint.pk, "version": version.number, **wishes, "drop": drop}
    after["until"] = until and until.isoformat()
    record(actor, "replay.create", str(replay), job=job, after=after)
    return replay


def _keep(
    replay: Replay,
    samples: list[Sample],
    found: Progress,
    wall: datetime,
    event_time: datetime | None,
    live_event_time: datetime | None,
) -> None:
    replay.samples = [[s.wall_ms, s.replay_ms, s.live_ms, s.pending_rows] for s in samples]
    last = samples[-1]
    if last.replay_ms is not None and last.live_ms is not None and _is_drawn(replay, wall):
        point = [last.wall_ms, last.replay_ms, last.live_ms]
        replay.history = progress.thin([*replay.history, point])
    replay.event_time_now = event_time or replay.event_time_now
    replay.live_event_time = live_event_time or replay.live_event_time
    replay.speed, replay.note = found.speed, _why(replay, last, found.note)[:500]
    replay.eta_low = _later(wall, found.eta_low_s)
    replay.eta_high = _later(wall, found.eta_high_s)
    fields = ("samples", "history", "event_time_now", "live_event_time", "speed", "note")
    replay.save(update_fields=[*fields, "eta_low", "eta_high"])


def _why(replay: Replay, sample: Sample, note: str) -> str:
    """Why it does not catch up, as far as that is known here."""
    if replay.paused:
        return "paused: nothing is read until somebody lets it go on"
    if not note:
        return ""
    if sample.pending_rows == 0:
        return f"{note}; its sources have nothing left to read"
    if replay.read_limit is not None:
        return f"{note}; its sources may read {replay.read_limit:,.15g} rows a second"
    return note


def _is_drawn(replay: Replay, wall: datetime) -> bool:
    """The chart shows how it caught up, and a little of what followed."""
    return replay.caught_up_at is None or wall - replay.caught_up_at < DRAWN_AFTER


def _tell(replay: Replay, sample: Sample, found: Progress, rate: float | None) -> None:
    lifecycle.tell(
        replay,
        event_ms=sample.replay_ms,
        live_ms=sample.live_ms,
        delay_ms=None if found.gap_ms is None else max(0, found.gap_ms),
        speed=found.speed,
        rate=rate,
        pct=progress.percent(epoch_ms(replay.event_time_start), sample),
        eta_low_s=found.eta_low_s,
        eta_high_s=found.eta_high_s,
    )


def _sample(kept: list[int | None]) -> Sample:
    wall_ms, replay_ms, live_ms, pending_rows = kept
    return Sample(wall_ms or 0, replay_ms, live_ms, pending_rows)


def _later(wall: datetime, seconds: float | None) -> datetime | None:
    """That many seconds later; None for what lies too far ahead to be a date."""
    if seconds is None or seconds > 10 * 365 * 86_400:
        return None
    return wall + timedelta(seconds=seconds)
