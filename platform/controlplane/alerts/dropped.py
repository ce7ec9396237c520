"""Points of series that were dropped, as those who dropped them have counted.

    engine's reporter      reporterPointsDropped   no room while nobody took them, or refused
    write endpoint         points_refused          could not be read, or are too old
    control plane itself   series_points_lost      no store took them

All are counters that begin at 0 with a process and are points themselves: how they rose in an hour
is what counts. They are of the whole installation, not of one job.

Late     what a reporter dropped because nobody took its points is known when somebody does again.
Missing  None: no counter was ever written, or the store is away.
"""

from __future__ import annotations

import logging
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from controlplane.metrics.contract import Series, SeriesAway
from controlplane.metrics.store import METRICS, PLATFORM, series_store
from controlplane.moments import epoch_ms

log = logging.getLogger(__name__)

COUNTERS = (
    (METRICS, "headwater_jobmanager", "reporterPointsDropped"),
    (PLATFORM, "process", "points_refused"),
    (PLATFORM, "process", "series_points_lost"),
)
HOUR_MS = 3_600_000
STEP_MS = 60_000
BACK = timedelta(days=7)
"""How far back the last value of a counter is looked for, before it has risen by all it says."""

Rise = tuple[int, float]
"""Epoch ms, and how many were dropped then."""


def dropped_in_the_last_hour(now: datetime) -> float | None:
    """How many points were."""
    end_ms = epoch_ms(now)
    rises = rises_between(epoch_ms(now - BACK), end_ms)
    return None if rises is None else over_an_hour(rises, range(end_ms, end_ms + 1))[end_ms]


def rises_between(start_ms: int, end_ms: int) -> list[Rise] | None:
    """Every rise of every counter, oldest first; None when there is no counter."""
    try:
        lines = [line for counter in COUNTERS for line in _lines(*counter, start_ms, end_ms)]
    except (SeriesAway, sqlite3.Error) as error:
        log.warning("it is not known how many points were dropped: %s", error)
        return None
    if not lines:
        return None
    return sorted(rise for line in lines for rise in _rises(line))


def over_an_hour(rises: Sequence[Rise], grid: range) -> dict[int, float]:
    """How many were dropped in the hour before each look."""
    times = [at for at, _ in rises]
    total = [0.0, *accumulate(count for _, count in rises)]
    return {
        look: total[bisect_right(times, look)] - total[bisect_left(times, look - HOUR_MS)]
        for look in grid
    }


def _lines(bucket: str, measurement: str, field: str, start_ms: int, end_ms: int) -> list[Series]:
    return series_store().query(
        bucket,
        measurement,
        field,
        start_ms=start_ms,
        stop_ms=end_ms + 1,
        step_ms=STEP_MS,
        aggregate="max",
        limit=int(BACK.total_seconds() * 1_000) // STEP_MS,
    )


def _rises(line: Series) -> Iterator[Rise]:
    """A counter that fell began anew."""
    before = 0.0
    for at, value in line.points:
        if isinstance(value, int | float):
            if value != before:
                yield int(at), float(value - before if value > before else value)
            before = float(value)
