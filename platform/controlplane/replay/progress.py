"""How a replay is doing: speed, when it meets the live job, and whether it has.

    event time
        │            live ───────────────────
        │       ────/        . ˙
        │                . ˙   replay        the gap closes by (speed - live speed) each second
        │            . ˙
        └──────────────────────── wall clock

Speed      of a line: its rise over the window of the latest samples, in event seconds per wall
           second. The replay's is what people call "× real time".
Meeting    gap / (speed - live speed). The range comes from the speeds of the two halves of the
           window: a steady replay has a narrow one, a wavering one a wide one.
Level      in three samples in a row, either no source has rows left to read, or the gap is at most
           what somebody has said, or else what the live job itself covers in five wall seconds. So
           the rule fits any pace: a job that plays a day in a second and one that follows the
           clock. Event-time positions move in steps (one watermark per batch), so the widest step
           of the live job counts too. Behind: in none of three samples in a row.
Caught up  level for as long as somebody has said; that is for whoever keeps since when.
Restart    what was before the last restart of its run says nothing: its event time went back.

Pure: times come in as numbers, nothing is read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

WINDOW_MS = 15_000
"""Long enough to smooth checkpoints every second, short enough to show a stall."""
SAMPLES_KEPT = 60
LEVEL_SAMPLES = 3
LEVEL_LIVE_S = 5.0
FAR_S = 10 * 365 * 86_400.0
"""A meeting later than that is none: lines so nearly parallel meet by chance."""
CHART_POINTS = 240
"""Twice the points of a chart's width in tens of pixels: above that, every second one goes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Where both stood at one moment; times are epoch ms, None is unknown."""

    wall_ms: int
    replay_ms: int | None
    live_ms: int | None
    pending_rows: int | None = None
    """Rows that the replay's sources could read at once."""
    restarts: int = 0
    """Of its run, up to then."""
    percent: float | None = None
    """How much of the way lay behind it; it goes back with a restart only."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What the samples say; None is unknown."""

    speed: float | None
    live_speed: float | None
    gap_ms: int | None
    eta_low_s: float | None
    eta_high_s: float | None
    level: bool
    behind: bool
    note: str
    """Why there is no ETA, in one sentence; empty when there is one or none is needed."""


UNKNOWN = Progress(None, None, None, None, None, level=False, behind=False, note="")


def assess(samples: Sequence[Sample], within_ms: float | None = None) -> Progress:
    """How the replay is doing, from samples in the order of the wall clock.

    `within_ms`: the gap up to which it is level; None: as the live job's pace says.
    """
    recent = _window(samples)
    if not recent:
        return UNKNOWN
    speed = _slope([(s.wall_ms, s.replay_ms) for s in recent])
    live_speed = _slope([(s.wall_ms, s.live_ms) for s in recent])
    gap_ms = _gap(recent[-1])
    allowed_ms = _allowed_gap(recent) if within_ms is None else within_ms
    latest = since_restart(samples)[-LEVEL_SAMPLES:]
    known = len(latest) == LEVEL_SAMPLES
    flat = [_is_level(sample, allowed_ms) for sample in latest]
    if known and all(flat):
        return Progress(speed, live_speed, gap_ms, None, None, level=True, behind=False, note="")
    low, high = _meeting(recent, gap_ms)
    note = _note(speed, live_speed, gap_ms, low)
    behind = known and not any(flat)
    return Progress(speed, live_speed, gap_ms, low, high, level=False, behind=behind, note=note)


def percent(start_ms: int | None, sample: Sample, before: Sample | None = None) -> float | None:
    """How much of the way from the savepoint to where the live job is now lies behind it.

    The live job goes on, and a slow replay falls behind it: what was reached `before` stays, unless
    its run was started again meanwhile.
    """
    reached = None
    if before is not None and before.restarts == sample.restarts:
        reached = before.percent
    if start_ms is None or sample.replay_ms is None or sample.live_ms is None:
        return reached
    way = sample.live_ms - start_ms
    done = sample.replay_ms - start_ms
    now = 100.0 if way <= 0 else max(0.0, min(100.0, 100.0 * done / way))
    return now if reached is None else max(now, reached)


def since_restart(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Those of the present attempt."""
    return [sample for sample in samples if sample.restarts == samples[-1].restarts]


def thin(points: list[Any], most: int = CHART_POINTS) -> list[Any]:
    """At most `most` points of a line: every second one, but always the first and the last."""
    while len(points) > most:
        points = [*points[:-1:2], points[-1]]
    return points


def _window(samples: Sequence[Sample]) -> list[Sample]:
    if not samples:
        return []
    start = samples[-1].wall_ms - WINDOW_MS
    return [sample for sample in since_restart(samples) if sample.wall_ms >= start]


def _slope(points: Sequence[tuple[int, int | None]]) -> float | None:
    """Rise of a line per unit of the clock, from its first known point to its last; never a fall:
    event time that goes back was set back.
    """
    known = [(wall, event) for wall, event in points if event is not None]
    if len(known) < 2 or known[-1][0] <= known[0][0]:
        return None
    return max(0.0, (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0]))


def _gap(sample: Sample) -> int | None:
    if sample.replay_ms is None or sample.live_ms is None:
        return None
    return sample.live_ms - sample.replay_ms


def _is_level(sample: Sample, allowed_ms: float) -> bool:
    if sample.pending_rows == 0 and sample.replay_ms is not None:
        return True
    gap = _gap(sample)
    return gap is not None and gap <= allowed_ms


def _allowed_gap(recent: Sequence[Sample]) -> float:
    """What the live job covers in five seconds, and at least its widest step; 0 if it rests."""
    live_speed = _slope([(s.wall_ms, s.live_ms) for s in recent]) or 0.0
    known = [s.live_ms for s in recent if s.live_ms is not None]
    steps = [after - before for before, after in pairwise(known)]
    return max(live_speed * LEVEL_LIVE_S * 1000.0, *steps, 0.0) if steps else 0.0


def _meeting(recent: Sequence[Sample], gap_ms: int | None) -> tuple[float | None, float | None]:
    """Seconds until the lines meet, soonest and latest; (None, None) when they do not."""
    if gap_ms is None:
        return None, None
    middle = len(recent) // 2
    closing = [
        rate
        for part in (recent, recent[: middle + 1], recent[middle:])
        if (rate := _closing(part)) is not None
    ]
    if not closing or (closing[0] <= 0.0):
        return None, None
    forward = [rate for rate in closing if rate > 0.0]
    seconds = max(0.0, gap_ms / 1000.0)
    low, high = seconds / max(forward), seconds / min(forward)
    return (low, min(high, FAR_S)) if low <= FAR_S else (None, None)


def _closing(part: Sequence[Sample]) -> float | None:
    """By how much the gap shrinks, in event seconds per wall second."""
    speed = _slope([(s.wall_ms, s.replay_ms) for s in part])
    live_speed = _slope([(s.wall_ms, s.live_ms) for s in part])
    if speed is None:
        return None
    return speed - (live_speed or 0.0)


def _note(
    speed: float | None, live_speed: float | None, gap_ms: int | None, low: float | None
) -> str:
    if low is not None or speed is None:
        return ""
    if speed <= 0.0:
        return "not catching up: its event time stands still"
    if gap_ms is None:
        return ""
    pace = live_speed or 0.0
    return f"not catching up: it plays {speed:,.1f}× real time, the live job {pace:,.1f}×"
