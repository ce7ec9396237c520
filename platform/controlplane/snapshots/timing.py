"""When a schedule runs: a pure function of its settings and the time.

    grid      every n minutes from its first time, or a cron line in a time zone
    blackout  a run that would fall into one is left out
    jitter    a run comes up to `jitter` later, always the same for the same time

Zones    a cron line that names an hour runs once on the day that has that hour twice, and right
         after the gap on the day that does not have it, as Debian's cron does; one with a star
         in its hours or minutes counts real time. Intervals always count real time.
Errors   ValueError for a cron line, zone or window that cannot be meant.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MOST_TRIES = 5_000
"""Grid times in a row that a blackout may swallow, before a schedule never runs: with a run each
minute, three days."""


@dataclass(frozen=True, slots=True)
class Blackout:
    """A daily window, [start, end) in local time; one that ends before it starts spans midnight."""

    start: time
    end: time
    days: frozenset[int] = frozenset(range(7))
    """Weekdays on which it starts; 0 is Monday."""

    def covers(self, local: datetime) -> bool:
        """Whether a local time lies in it."""
        clock, day = local.time().replace(tzinfo=None), local.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= clock < self.end
        before, after = clock < self.end, clock >= self.start
        return (after and day in self.days) or (before and (day - 1) % 7 in self.days)


@dataclass(frozen=True, slots=True)
class Timing:
    """Everything that decides when a schedule runs."""

    every: timedelta | None = None
    cron: str = ""
    zone: tzinfo = UTC
    blackouts: Sequence[Blackout] = ()
    jitter: timedelta = timedelta()
    key: str = ""
    """What its jitter is drawn from, besides the time."""

    def after(self, planned: datetime, now: datetime) -> datetime | None:
        """The next time on the grid, after `now`, that no blackout covers; None: there is none."""
        return next(self.times(planned, now), None)

    def times(self, planned: datetime, now: datetime) -> Iterator[datetime]:
        """All of them, in UTC; `planned` is a time on the grid of an interval."""
        swallowed = 0
        for moment in self._grid(planned, now):
            local = self.due(moment).astimezone(self.zone)
            if any(window.covers(local) for window in self.blackouts):
                swallowed += 1
                if swallowed > MOST_TRIES:
                    return
                continue
            swallowed = 0
            yield moment

    def next_runs(self, planned: datetime, now: datetime, count: int) -> list[datetime]:
        """When it runs next, jitter included."""
        return [self.due(moment) for moment in islice(self.times(planned, now), count)]

    def due(self, planned: datetime) -> datetime:
        """When the run of that time comes."""
        if not self.jitter:
            return planned
        drawn = hashlib.sha256(f"{self.key} {planned.timestamp():.3f}".encode()).digest()
        return planned + self.jitter * (int.from_bytes(drawn[:4], "big") / 2**32)

    def _grid(self, planned: datetime, now: datetime) -> Iterator[datetime]:
        if self.every is None:
            yield from (found.astimezone(UTC) for found in cron_times(self.cron, self.zone, now))
            return
        missed = math.floor(max(now - planned, timedelta()) / self.every)
        moment = planned if planned > now else planned + (missed + 1) * self.every
        while True:
            yield moment
            moment += self.every


def cron_times(line: str, zone: tzinfo, now: datetime) -> Iterator[datetime]:
    """The times of a cron line after `now`. Raises ValueError."""
    if len(line.split()) != 5:
        msg = f"cron line must have five fields: got {line!r}; e.g. 0 2 * * 1-5"
        raise ValueError(msg)
    try:
        # In the hour that comes twice, the library begins again at its first turn.
        yield from (found for found in CronSim(line, now.astimezone(zone)) if found > now)
    except CronSimError as error:
        msg = f"cron line cannot be read: {str(error).lower()} in {line!r}; e.g. 0 2 * * 1-5"
        raise ValueError(msg) from None


def zone_of(name: str) -> ZoneInfo:
    """A time zone. Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # an unknown name, a path, a folder
        msg = f"time zone is not known: got {name[:64]!r}; use a name such as Europe/Berlin or UTC"
        raise ValueError(msg) from None


def clock_of(text: str) -> time:
    """A time of day, HH:MM. Raises ValueError."""
    try:
        return datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 - a time of day has no zone
    except ValueError:
        msg = f"time of day must be HH:MM: got {text[:20]!r}; e.g. 22:00"
        raise ValueError(msg) from None
