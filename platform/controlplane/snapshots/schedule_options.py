"""What a schedule may be asked to do, checked; and from its row to its timing.

blackouts   one window a line: `22:00-06:00`, `sat,sun 00:00-00:00`, `mon-fri 08:00-10:00`
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.access.errors import Refused, invalid
from controlplane.snapshots.models import SavepointSchedule
from controlplane.snapshots.timing import Blackout, Timing, clock_of, zone_of

MIN_MINUTES = 0.1
MAX_MINUTES = 525_600.0
MAX_JITTER_S = 86_400
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW = re.compile(r"(?:(?P<days>[a-z,\- ]+?) +)?(?P<start>[0-9:]+) ?- ?(?P<end>[0-9:]+)")


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """What a person asks for, besides the interval."""

    cron: str = ""
    zone: str = "UTC"
    jitter_s: int = 0
    blackouts: str = ""
    late: SavepointSchedule.Late = SavepointSchedule.Late.ONCE
    skip_unhealthy: bool = False
    skip_unchanged: bool = False


def checked_values(every_minutes: float | None, options: ScheduleOptions) -> dict[str, Any]:
    """The columns of a schedule. Raises Refused, with the field."""
    if (every_minutes is None) == (not options.cron.strip()):
        msg = "schedule needs an interval or a cron line: give one of the two"
        raise invalid(msg, "every_minutes")
    if every_minutes is not None:
        check_interval(every_minutes)
    if not 0 <= options.jitter_s <= MAX_JITTER_S:
        msg = f"jitter must be between 0 and {MAX_JITTER_S:,} seconds: got {options.jitter_s}"
        raise invalid(msg, "jitter_s")
    return {
        "every_minutes": every_minutes,
        "cron": " ".join(options.cron.split()),
        "zone": options.zone.strip() or "UTC",
        "jitter_s": options.jitter_s,
        "blackouts": list(_windows(options.blackouts)),
        "late": options.late,
        "skip_unhealthy": options.skip_unhealthy,
        "skip_unchanged": options.skip_unchanged,
    }


def check_interval(every_minutes: float) -> None:
    """Refuse an interval that is no number or out of range."""
    if not math.isfinite(every_minutes) or not MIN_MINUTES <= every_minutes <= MAX_MINUTES:
        msg = (
            f"interval must be between {MIN_MINUTES:g} and {MAX_MINUTES:,.0f} minutes: "
            f"got {every_minutes:g}"
        )
        raise invalid(msg, "every_minutes")


def timing_of(schedule: SavepointSchedule) -> Timing:
    """When it runs. Raises ValueError for what cannot be meant."""
    every = schedule.every_minutes
    return Timing(
        every=None if every is None else timedelta(minutes=every),
        cron=schedule.cron,
        zone=zone_of(schedule.zone),
        blackouts=tuple(map(_blackout, schedule.blackouts)),
        jitter=timedelta(seconds=schedule.jitter_s),
        key=str(schedule.pk),
    )


def first_time(schedule: SavepointSchedule, now: datetime) -> datetime:
    """Its first time after `now`. Raises Refused when there is none, or it cannot be meant."""
    try:
        found = timing_of(schedule).after(now, now)
    except ValueError as error:
        text = str(error)
        field = "zone" if text.startswith("time zone") else "cron"
        raise invalid(text, field) from error
    if found is None:
        msg = "schedule would never run: its blackout windows cover every time; leave some out"
        raise invalid(msg, "blackouts")
    return found


def window_words(window: Mapping[str, Any]) -> str:
    """A blackout window as people write it."""
    days = [DAYS[day] for day in window["days"]]
    return f"{','.join(days) + ' ' if len(days) < 7 else ''}{window['from']}-{window['to']}"


def _windows(text: str) -> Iterator[Mapping[str, Any]]:
    for line in filter(None, (part.strip().lower() for part in re.split(r"[\n;]", text))):
        found = _WINDOW.fullmatch(line)
        if found is None:
            raise _no_window(line)
        try:
            clock_of(found["start"]), clock_of(found["end"])
            yield {"days": _days(found["days"]), "from": found["start"], "to": found["end"]}
        except ValueError:
            raise _no_window(line) from None


def _no_window(line: str) -> Refused:
    msg = f"blackout window cannot be read: got {line[:60]!r}; e.g. mon-fri 22:00-06:00"
    return invalid(msg, "blackouts")


def _days(text: str | None) -> Sequence[int]:
    """Weekdays by name, single or as ranges. Raises ValueError."""
    if not text:
        return list(range(7))
    found: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        low, high = DAYS.index(first), DAYS.index(last or first)
        found |= {day % 7 for day in range(low, high + (1 if high >= low else 8))}
    return sorted(found)


def _blackout(window: Mapping[str, Any]) -> Blackout:
    days = frozenset(int(day) for day in window["days"])
    return Blackout(clock_of(window["from"]), clock_of(window["to"]), days)
