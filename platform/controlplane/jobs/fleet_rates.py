"""Input rates of the last minute, for the small lines in the list of jobs.

    series store, a point a second ─▶ {job id: [rate or None, …]}, oldest first

Units    rows per second; None where nothing was measured, as while a job did not run.
Cost     one query of the database and one of the store, for at most a page of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.contrib.auth.models import User

from controlplane.access.lookup import visible_jobs
from controlplane.jobs.fleet_query import PAGE
from controlplane.metrics.store import ENGINE, series_store

STEP_MS = 1_000
STEPS = 60
"""As many as a line has room for."""


def rates_lately(user: User, job_ids: Sequence[int], now_ms: int) -> dict[int, list[float | None]]:
    """The rates of those of these jobs that this person may see."""
    jobs = visible_jobs(user).filter(pk__in=job_ids[:PAGE])
    ids = {name: job_id for job_id, name in jobs.values_list("pk", "name")}
    rates: dict[int, list[float | None]] = {job_id: [None] * STEPS for job_id in ids.values()}
    begin_ms = now_ms // STEP_MS * STEP_MS - STEPS * STEP_MS
    if not ids:
        return rates
    found = series_store().query(
        ENGINE,
        "job",
        "in",
        where={"job": list(ids), "purpose": "live"},
        start_ms=begin_ms,
        stop_ms=begin_ms + STEPS * STEP_MS,
        step_ms=STEP_MS,
    )
    for series in found:
        line = rates[ids[series.tags["job"]]]
        for at_ms, value in series.points:
            if not isinstance(value, str) and math.isfinite(value):
                line[int(at_ms - begin_ms) // STEP_MS] = float(value)
    return rates
