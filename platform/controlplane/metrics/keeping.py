"""Points of the platform itself: kept if the store takes them, else counted and told once.

    collector, self measurement ──keep──▶ store
                                      └──▶ counter `series_points_lost`, one line in the log

Guarantee  never raises: no job and no page waits for a chart.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Sequence

from controlplane.metrics.contract import SeriesAway
from controlplane.metrics.line_protocol import Point
from controlplane.metrics.self_measure import measures
from controlplane.metrics.store import PLATFORM, series_store

log = logging.getLogger(__name__)

LOST = "series_points_lost"


def tell_of_process() -> None:
    """Write what this process has counted, as measurement `process`. Blocks as `keep` does."""
    counted = measures().look()
    if counted:
        fields = tuple((name, float(number)) for name, number in sorted(counted.items()))
        tags = (("process", str(os.getpid())),)
        _of_process.keep(PLATFORM, [Point("process", tags, fields, time.time_ns())])  # noqa: TID251


class Keeping:
    """Writes points, and remembers whether that works."""

    def __init__(self) -> None:
        self._away = False

    def keep(self, bucket: str, points: Sequence[Point]) -> None:
        """Write the points, or count them. Blocks for as long as the store takes."""
        if not points:
            return
        try:
            refused = series_store().write(bucket, points)
        except (SeriesAway, sqlite3.Error) as error:
            measures().count(LOST, len(points))
            if not self._away:
                log.warning("points of %s are lost until this works again: %s", bucket, error)
            self._away = True
            return
        measures().count(LOST, len(refused))
        if self._away:
            log.info("points of %s are kept again", bucket)
        self._away = False


_of_process = Keeping()
