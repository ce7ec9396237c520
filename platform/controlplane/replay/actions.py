"""What people do with replays.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

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
from controlplane.operations.models import Operation
from controlplane.operations.start import key_of, start_operation
from controlplane.replay import lifecycle
from controlplane.replay.cutting import chosen
from controlplane.replay.limits import Limit
from controlplane.replay.models import OPEN, Difference, Replay
from controlplane.replay.positions import Positions, checked_positions
from controlplane.replay.preflight import check_fit
from controlplane.replay.tuning import Tuning, tuning_of
from controlplane.snapshots.models import Savepoint

NO_LIMIT = Limit()
AS_EVER = Tuning()
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
    limit: Limit = NO_LIMIT,
    drop: Collection[str] = (),
    accept_missing: Collection[str] = (),
    positions: Positions = MappingProxyType({}),
    tuning: Tuning = AS_EVER,
) -> tuple[Replay, Operation]:
    """Replay `version` from `savepoint` beside the live job. Operator.

    `until`: the event time at which it ends; `discards`: whether its sinks write nothing;
    `limit`: how fast it may read from the moment that every task runs; `drop`: state (uid, or
    uid/state) that may be left behind; `accept_missing`: sources (uid) that may go on without
    input which is not there any more; `positions`: where sources (uid) begin instead of at the
    savepoint, earliest or an ISO time; `tuning`: when it has caught up, and how long it can be
    rolled back.
    """
    job = savepoint.job
    require(actor, job, Role.OPERATOR)
    check_fit(savepoint, version)
    subtasks = checked_parallelism(parallelism)
    check_until(savepoint, until)
    limit.check()
    elsewhere = checked_positions(savepoint, positions)
    left_behind, accepted = sorted(set(drop)), sorted(set(accept_missing))
    with transaction.atomic():
        if earlier := _earlier(job, actor, idempotency_key):
            return earlier
        if job.replays.filter(status__in=OPEN).count() >= MAX_OPEN:
            msg = f"job {job.name} has {MAX_OPEN} replays going on: abandon one first"
            raise conflict(msg)
        wishes: dict[str, Any] = {"until": until, "discards": discards, **_columns(limit)}
        wishes |= {"accepted_gaps": accepted, "positions": elsewhere, **asdict(tuning)}
        replay = _create(actor, savepoint, version, left_behind, parallelism=subtasks, **wishes)
        params: dict[str, Any] = {"replay": replay.pk, "version": version.pk}
        params |= {"savepoint": savepoint.pk, "drop": left_behind}
        params |= {"accept_missing_input": accepted} if accepted else {}
        params |= {"positions": elsewhere} if elsewhere else {}
        operation = start_operation("start_replay", job, actor, params, idempotency_key)
    return replay, operation


def clone_replay(
    replay: Replay,
    actor: User,
    drop: Collection[str] = (),
    accept_missing: Collection[str] = (),
    idempotency_key: str = "",
) -> tuple[Replay, Operation]:
    """Start another one with the same plan; what may be lost is agreed to anew. Operator."""
    return start_replay(
        replay.savepoint,
        replay.version,
        actor,
        replay.parallelism,
        idempotency_key,
        until=replay.until,
        discards=replay.discards,
        limit=replay.limit,
        drop=drop,
        accept_missing=accept_missing,
        positions=replay.positions,
        tuning=tuning_of(replay),
    )


def abandon_replay(replay: Replay, actor: User, idempotency_key: str = "") -> Operation:
    """End a replay for good; what it wrote beside the targets stays. Operator."""
    require(actor, replay.job, Role.OPERATOR)
    params = {"replay": replay.pk}
    return start_operation("abandon_replay", replay.job, actor, params, idempotency_key)


def limit_replay(replay: Replay, actor: User, limit: Limit) -> None:
    """Let it read at most so fast. Operator."""
    limit.check()
    _read_at(replay, actor, "replay.limit", **_columns(limit))


def _columns(limit: Limit) -> dict[str, float | None]:
    return {"read_limit": limit.rows_per_second, "speed_limit": limit.times_real_time}


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
    limit = Limit(0.0) if replay.paused else replay.limit
    rows, times = limit.rows_per_second, limit.times_real_time
    try:
        client_for(replay.job.cluster).limit_reading(replay.run.engine_job_id, rows, times)
    except EngineAway as error:
        raise Refused(502, "engine", error.message) from error
    except EngineError as error:
        raise conflict(error.message) from error


def promote_replay(
    replay: Replay,
    actor: User,
    idempotency_key: str = "",
    *,
    at: datetime | Literal["soon"] | None = None,
) -> Operation:
    """Let its version take the place of the live one. Operator.

    With what it has corrected since its savepoint; `at`: with what it writes from that event time
    on, which must be ahead of both; "soon": a little ahead.
    """
    require(actor, replay.job, Role.OPERATOR)
    params = {"replay": replay.pk, "version": replay.version_id}
    if at is None:
        return start_operation("promote_replay", replay.job, actor, params, idempotency_key)
    cut = params | {"at": chosen(replay, at).isoformat()}
    return start_operation("cut_over", replay.job, actor, cut, idempotency_key)


@transaction.atomic
def accept_difference(difference: Difference, actor: User) -> None:
    """Say that the new version intends these differences. Operator."""
    replay = difference.output.replay
    require(actor, replay.job, Role.OPERATOR)
    waiting = Difference.objects.filter(pk=difference.pk, accepted_at=None)
    if waiting.update(accepted_by=actor, accepted_at=timezone.now()):
        after = {"difference": str(difference), "rows": difference.rows}
        record(actor, "replay.accept", str(replay), job=replay.job, after=after)
        accepted = Difference.objects.filter(output__replay=replay).exclude(accepted_at=None)
        lifecycle.tell(replay, accepted=accepted.count())


def rollback_replay(replay: Replay, actor: User, idempotency_key: str = "") -> Operation:
    """Let the version before take its place again, with its outputs. Operator."""
    require(actor, replay.job, Role.OPERATOR)
    params = {"replay": replay.pk, "version": replay.version_id}
    return start_operation("rollback_replay", replay.job, actor, params, idempotency_key)


def _earlier(job: Job, actor: User, idempotency_key: str) -> tuple[Replay, Operation] | None:
    """What the same wish began before."""
    if not idempotency_key:
        return None
    key = key_of(actor, idempotency_key)
    same = Operation.objects.filter(idempotency_key=key, job=job, kind="start_replay").first()
    return (Replay.objects.get(pk=same.params["replay"]), same) if same else None


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
