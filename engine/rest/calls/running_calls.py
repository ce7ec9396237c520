"""Requests about running jobs that only our engine answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from engine.rest.answers.checkpoints import OperationStatus, trigger_id_of
from engine.rest.answers.statistics import ReadLimit, Statistics
from engine.rest.answers.watching import WatchedJob, watched_jobs
from engine.rest.calls.call import Call
from engine.rest.model.requests import RescaleRequest
from engine.rest.model.states import StateQuery, StateValue

_JOBS = "/headwater/jobs"


def watch(
    job_ids: Iterable[str], metrics: Iterable[str], failures: int = 10, since_ms: int = 0
) -> Call[list[WatchedJob]]:
    """All that can be watched of these jobs; those that are not known (any more) are left out.

    Checkpoints that had ended before `since_ms`, by the engine's clock, are not in the history.
    """
    query = {
        "jobs": ",".join(job_ids),
        "get": ",".join(metrics),
        "maxExceptions": str(failures),
        "since": str(since_ms),
    }
    return Call("GET", "/headwater/watch", watched_jobs, query)


def statistics(job_id: str, window_s: int = 300, step_s: int = 1) -> Call[Statistics]:
    """What source batches came to in the last `window_s` seconds, by step."""
    query = {"window": str(window_s), "step": str(step_s)}
    return Call("GET", f"{_JOBS}/{job_id}/statistics", Statistics.of, query)


def rescale(job_id: str, request: RescaleRequest) -> Call[str]:
    """Begin to change the parallelism of a job, or of some vertices; the trigger id to poll."""
    body: dict[str, object] = {"triggerId": request.trigger_id}
    body |= {"parallelism": request.parallelism, "vertices": dict(request.vertices)}
    return Call("POST", f"{_JOBS}/{job_id}/rescaling", trigger_id_of, body=body)


def rescale_status(job_id: str, trigger_id: str) -> Call[OperationStatus]:
    """Where a rescale stands."""
    return Call("GET", f"{_JOBS}/{job_id}/rescaling/{trigger_id}", OperationStatus.of)


def read_limits(job_id: str) -> Call[list[ReadLimit]]:
    """How fast each source may read."""
    return Call("GET", f"{_JOBS}/{job_id}/read-limits", _read_limits)


def limit_reading(
    job_id: str,
    rows_per_second: float | None,
    source: str | None = None,
    times_real_time: float | None = None,
) -> Call[list[ReadLimit]]:
    """Change how fast a source (by uid), or each, may read, in one of two ways; None: as it can."""
    body: dict[str, object] = {"rowsPerSecond": rows_per_second, "source": source}
    if times_real_time is not None:
        body["timesRealTime"] = times_real_time
    return Call("PATCH", f"{_JOBS}/{job_id}/read-limits", _read_limits, body=body)


def _read_limits(body: Mapping[str, Any]) -> list[ReadLimit]:
    return list(map(ReadLimit.of, body["sources"]))


def live_state(job_id: str, query: StateQuery) -> Call[StateValue]:
    """What one key has in one state of a running job."""
    names = "/".join(quote(name, safe="") for name in (query.operator, query.state))
    key = {f"key.{name}" if name else "key": value for name, value in query.key.items()}
    return Call("GET", f"{_JOBS}/{job_id}/state/{names}", StateValue.from_json, key)
