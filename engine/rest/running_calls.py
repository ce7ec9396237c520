"""Requests about running jobs that only our engine answers. See calls.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.rest.answers.statistics import ReadLimit, Statistics
from engine.rest.calls import Call

_JOBS = "/headwater/jobs"


def statistics(job_id: str, window_s: int = 300, step_s: int = 1) -> Call[Statistics]:
    """What source batches came to in the last `window_s` seconds, by step."""
    query = {"window": str(window_s), "step": str(step_s)}
    return Call("GET", f"{_JOBS}/{job_id}/statistics", Statistics.of, query)


def read_limits(job_id: str) -> Call[list[ReadLimit]]:
    """How fast each source may read."""
    return Call("GET", f"{_JOBS}/{job_id}/read-limits", _read_limits)


def limit_reading(
    job_id: str, rows_per_second: float | None, source: str | None = None
) -> Call[list[ReadLimit]]:
    """Change how fast a source (by uid), or each, may read; None: as it can."""
    body = {"rowsPerSecond": rows_per_second, "source": source}
    return Call("PATCH", f"{_JOBS}/{job_id}/read-limits", _read_limits, body=body)


def _read_limits(body: Mapping[str, Any]) -> list[ReadLimit]:
    return list(map(ReadLimit.of, body["sources"]))
