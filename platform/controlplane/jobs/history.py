"""How a job ran over a stretch of time, and what happened in it: what its timeline draws.

Units    epoch ms; a stretch ends by now and is no longer than is kept.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from controlplane.jobs.changes import job_changes
from controlplane.jobs.models import Job
from controlplane.metrics.contract import DAY_MS, MINUTE_MS
from controlplane.metrics.queries import job_history
from controlplane.moments import now_ms
from controlplane.snapshots.checkpoint_bars import checkpoint_bars

LONGEST_MS = 7 * DAY_MS
SHORTEST_MS = 1_000
USUAL_MS = 10 * MINUTE_MS


def history_of(
    job: Job, start: int | None = None, stop: int | None = None, minutes: int | None = None
) -> dict[str, Any]:
    """The last `minutes`, or from one time to another: series, checkpoints and events."""
    start_ms, stop_ms = _stretch(start, stop, minutes)
    return {
        "from_ms": start_ms,
        "to_ms": stop_ms,
        **asdict(job_history(job, start_ms, stop_ms)),
        "checkpoints": list(map(asdict, checkpoint_bars(job, start_ms, stop_ms))),
        "events": list(map(asdict, job_changes(job, start_ms, stop_ms))),
    }


def _stretch(start: int | None, stop: int | None, minutes: int | None) -> tuple[int, int]:
    now = now_ms()
    if start is None or stop is None:
        return now - _within(USUAL_MS if minutes is None else minutes * MINUTE_MS), now
    until_ms = min(now, stop)
    return until_ms - _within(until_ms - start), until_ms


def _within(length_ms: int) -> int:
    return min(LONGEST_MS, max(SHORTEST_MS, length_ms))
