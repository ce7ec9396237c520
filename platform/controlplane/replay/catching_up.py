"""When a replay has caught up: level with the live job for long enough, and what broke that.

    behind ──level──▶ level since … ──for as long as asked──▶ caught up ─ ─ behind ─ ─ level since …
       ▲                    │                                  (stays, with what broke it, and when)
       └──one bad sample────┘

Needs    a sample every second or so: what nobody saw for longer than the window of samples is no
         evidence, nor is what was before a restart.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from controlplane.replay.models import Replay
from controlplane.replay.progress import WINDOW_MS, Progress, Sample
from controlplane.replay.tuning import Tuning

FIELDS = ("level_since", "fell_behind_at", "fell_behind")
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def follow(
    replay: Replay, samples: list[Sample], found: Progress, wall: datetime, why: str
) -> bool:
    """Note since when it is level, or behind again; whether it has caught up by now."""
    if _is_broken(samples):
        replay.level_since = None
    if found.level:
        replay.level_since = replay.level_since or wall
    elif replay.caught_up_at is None:
        replay.level_since = None
    elif found.behind:
        if replay.level_since is not None or replay.fell_behind_at is None:
            replay.fell_behind_at = wall
            replay.fell_behind = f"{behind_text(found.gap_ms)}; {why}"[:500]
        replay.level_since = None
    since = replay.level_since
    return since is not None and wall - since >= timedelta(seconds=replay.level_for_s)


def rule_text(terms: Tuning) -> str:
    """When a replay counts as caught up, in words."""
    if terms.level_within_s is None:
        within = "at most what the live job covers in 5 s behind it"
    else:
        within = f"less than {length(terms.level_within_s)} of event time behind the live job"
    return f"{within}, for {length(terms.level_for_s)}"


def back_text(terms: Tuning) -> str:
    """How long after its promotion a replay can be rolled back, in words."""
    return length(86_400 * terms.back_days)


def behind_text(gap_ms: int | None) -> str:
    """By how much it is behind."""
    if gap_ms is None:
        return "how far it is behind is not known"
    return f"{length(max(0, gap_ms) / 1000)} behind the live job"


def length(seconds: float) -> str:
    """A length of time, two units at most.

    >>> [length(at) for at in (0, 0.5, 59, 90, 3601, 180_000)]
    ['0 s', '0.5 s', '59 s', '1 m 30 s', '1 h', '2 d 2 h']
    """
    if seconds < 60:
        return f"{round(seconds, 1):g} s"
    at = next(at for at, (_, size) in enumerate(_UNITS) if round(seconds) >= size)
    left, parts = round(seconds), []
    for name, size in _UNITS[at : at + 2]:
        count, left = divmod(left, size)
        parts += [f"{count} {name}"] if count else []
    return " ".join(parts)


def _is_broken(samples: list[Sample]) -> bool:
    """Whether nothing is known of the time before the newest sample."""
    if len(samples) < 2:
        return True
    before, last = samples[-2:]
    return last.wall_ms - before.wall_ms > WINDOW_MS or last.restarts != before.restarts
