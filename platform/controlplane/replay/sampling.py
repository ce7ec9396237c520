"""What the collector tells of replays: where each stood at one moment, and what follows from it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.moments import epoch_ms
from controlplane.replay import lifecycle, progress
from controlplane.replay.models import Replay
from controlplane.replay.progress import Progress, Sample

DRAWN_AFTER = timedelta(minutes=1)


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
