"""What the collector tells of replays: how each stood at one moment, and what follows from it.

    a look ─▶ Seen ─┬─ its run runs ─▶ record_sample ──────▶ speed, ETA, percent, the chart, and why
                    └─ it does not ──▶ record_standstill ──▶ why

Order    the chart's points are [wall ms, replay's event ms, live event ms, restarts, rows a second
         at most, times real time at most]: a restart is where the fourth grows; a limit of 0 rows
         is a pause, of null none.
"""

from __future__ import annotations

from dataclasses import astuple, replace
from datetime import datetime, timedelta

from django.db import transaction

from controlplane.moments import epoch_ms
from controlplane.replay import lifecycle, progress
from controlplane.replay.catching_up import FIELDS, follow
from controlplane.replay.models import Replay
from controlplane.replay.progress import Progress, Sample
from controlplane.replay.stalls import Cause, Pace, Seen, stall

DRAWN_AFTER = timedelta(minutes=1)


@transaction.atomic
def record_sample(
    replay: Replay,
    wall: datetime,
    event_time: datetime | None,
    live_event_time: datetime | None,
    seen: Seen,
) -> Progress:
    """Keep where replay and live job stood, and work out how it is doing."""
    fresh = Replay.objects.select_for_update().select_related("job").get(pk=replay.pk)
    if fresh.until is not None and live_event_time is not None:
        live_event_time = min(live_event_time, fresh.until)  # that is how far it will go
    samples = _with(fresh, wall, event_time, live_event_time, seen)
    within_s = fresh.level_within_s
    found = progress.assess(samples, None if within_s is None else 1000.0 * within_s)
    why = stall(seen, _pace(fresh), samples[-1].restarts - samples[0].restarts).text
    _keep(fresh, samples, found, wall, _note(fresh, found, why))
    has_caught_up = follow(fresh, samples, found, wall, why)
    fresh.event_time_now = event_time or fresh.event_time_now
    fresh.live_event_time = live_event_time or fresh.live_event_time
    fresh.save(update_fields=["event_time_now", "live_event_time", *FIELDS])
    if has_caught_up and fresh.until is None:
        lifecycle.caught_up(fresh, wall)
    _tell(fresh, samples[-1], found, seen.rate)
    return found


@transaction.atomic
def record_standstill(replay: Replay, wall: datetime, seen: Seen) -> None:
    """Keep why its run does not run; what its event time was is not told anew."""
    fresh = Replay.objects.select_for_update().select_related("job").get(pk=replay.pk)
    found = stall(seen, _pace(fresh))
    starts = fresh.status == Replay.Status.STARTING and found.cause == Cause.NOT_RUNNING
    note = f"not catching up: {found.text}"[:500]
    if starts or note == fresh.note:
        return
    _set_note(fresh, note, wall)
    fresh.speed, fresh.eta_low, fresh.eta_high, fresh.level_since = None, None, None, None
    fields = ("note", "stalled_since", "speed", "eta_low", "eta_high", "level_since")
    fresh.save(update_fields=fields)
    unknown = dict.fromkeys(("speed", "rate", "eta_low_s", "eta_high_s"))
    lifecycle.tell(fresh, **unknown)


def samples_of(replay: Replay) -> list[Sample]:
    """The latest samples, oldest first."""
    return [Sample(*kept) for kept in replay.samples]


def percent_of(replay: Replay) -> float | None:
    """How much of the way lay behind it when it was seen last."""
    last = next(reversed(samples_of(replay)), None)
    return None if last is None else last.percent


def _with(
    replay: Replay,
    wall: datetime,
    event_time: datetime | None,
    live_event_time: datetime | None,
    seen: Seen,
) -> list[Sample]:
    """The samples, with the newest."""
    before = samples_of(replay)
    sample = Sample(
        epoch_ms(wall),
        epoch_ms(event_time),
        epoch_ms(live_event_time),
        seen.pending_rows,
        seen.restarts,
    )
    last = before[-1] if before else None
    reached = progress.percent(epoch_ms(replay.event_time_start), sample, last)
    return [*before, replace(sample, percent=reached)][-progress.SAMPLES_KEPT :]


def _keep(
    replay: Replay, samples: list[Sample], found: Progress, wall: datetime, note: str
) -> None:
    replay.samples = [list(astuple(sample)) for sample in samples]
    last = samples[-1]
    if last.replay_ms is not None and last.live_ms is not None and _is_drawn(replay, wall):
        reached = last.wall_ms, last.replay_ms, last.live_ms, last.restarts
        point = [*reached, _limit(replay), _times(replay)]
        replay.history = progress.thin([*replay.history, point])
    replay.speed = found.speed
    _set_note(replay, note, wall)
    replay.eta_low = _later(wall, found.eta_low_s)
    replay.eta_high = _later(wall, found.eta_high_s)
    fields = ("samples", "history", "speed", "note", "stalled_since", "eta_low", "eta_high")
    replay.save(update_fields=fields)


def _set_note(replay: Replay, note: str, wall: datetime) -> None:
    """Why it does not catch up, and since when it does not."""
    replay.note = note
    replay.stalled_since = (replay.stalled_since or wall) if note else None


def _note(replay: Replay, found: Progress, why: str) -> str:
    """Why it does not catch up; empty when it does, or has."""
    if replay.paused:
        return why
    return f"{found.note}; {why}"[:500] if found.note else ""


def _pace(replay: Replay) -> Pace:
    return Pace(replay.paused, replay.read_limit, replay.speed_limit)


def _limit(replay: Replay) -> float | None:
    return 0.0 if replay.paused else replay.read_limit


def _times(replay: Replay) -> float | None:
    return None if replay.paused else replay.speed_limit


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
        pct=sample.percent,
        eta_low_s=found.eta_low_s,
        eta_high_s=found.eta_high_s,
        restarts=sample.restarts,
        limit=_limit(replay),
        speed_limit=_times(replay),
    )


def _later(wall: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else wall + timedelta(seconds=seconds)
