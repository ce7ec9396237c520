"""The life of an alert. Pure: times come in.

            breached for `hold`           well for `hold`
    pending ────────────────────▶ firing ─────────────────▶ resolved
       └── well: gone                └── breached again: stays

Guarantee  no flapping: what fires has been breached for `hold` on end, and what is resolved has
           been well for `hold` on end; so an alert changes at most once in that time.
Missing    a value that is not known ends a pending alert, and lets a firing one stand: that has to
           be well for `hold` anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


class Look(StrEnum):
    """What a value says."""

    BREACHED = "breached"
    WELL = "well"
    UNKNOWN = "unknown"


class Phase(StrEnum):
    """Where an alert is."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Life:
    """One alert."""

    phase: Phase
    since: datetime
    fired_at: datetime | None = None
    well_since: datetime | None = None
    resolved_at: datetime | None = None


def judge(value: float | None, threshold: float) -> Look:
    """Whether a value breaches a threshold: from it on."""
    if value is None:
        return Look.UNKNOWN
    return Look.BREACHED if value >= threshold else Look.WELL


def step(life: Life | None, look: Look, now: datetime, hold: timedelta) -> Life | None:
    """The alert after a look; None when there is none (any more)."""
    if life is None or life.phase is Phase.PENDING:
        return _rising(life, look, now, hold)
    if look is not Look.WELL:
        return replace(life, well_since=None)
    since = life.well_since or now
    if now - since >= hold:
        return replace(life, phase=Phase.RESOLVED, well_since=since, resolved_at=now)
    return replace(life, well_since=since)


def _rising(life: Life | None, look: Look, now: datetime, hold: timedelta) -> Life | None:
    if look is not Look.BREACHED:
        return None
    life = life or Life(Phase.PENDING, now)
    if now - life.since >= hold:
        return replace(life, phase=Phase.FIRING, fired_at=now)
    return life
