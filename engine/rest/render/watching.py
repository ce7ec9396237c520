"""Everything that those who watch a job look at, each part as its own route gives it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.checkpoint.coordination.stats import (
    CheckpointHistory,
    CheckpointStats,
    CheckpointStatus,
)
from engine.rest.model.jobs import FailureHistory, JobDetails, VertexDetails
from engine.rest.model.operations import JobProgress
from engine.rest.render import checkpoints, failures, jobs, metrics, snapshots


@dataclass(frozen=True, slots=True)
class Watched:
    """One job as it was in one moment."""

    job: JobDetails
    checkpoints: CheckpointHistory
    failures: FailureHistory
    progress: JobProgress


def recent(history: CheckpointHistory, since_ms: int) -> CheckpointHistory:
    """Without checkpoints that had ended before; counts and the latest of each sort stay."""
    kept = (one for one in history.history if _ended_ms(one) >= since_ms)
    return replace(history, history=tuple(kept))


def _ended_ms(stats: CheckpointStats) -> float:
    if stats.status is CheckpointStatus.IN_PROGRESS:
        return math.inf
    return max(stats.failed_ms or 0, stats.triggered_ms + max(0, stats.duration_ms))


def watched(
    seen: Sequence[Watched], names: Sequence[str], at_most: int | None, now_ms: int
) -> dict[str, object]:
    """All of them; of metrics, those in `names`, and of failures the newest `at_most`."""
    return {"jobs": [_job(one, frozenset(names), at_most, now_ms) for one in seen]}


def _job(
    seen: Watched, names: frozenset[str], at_most: int | None, now_ms: int
) -> dict[str, object]:
    known = metrics.job_metrics(seen.job)
    return {
        "job": jobs.details(seen.job, now_ms),
        "checkpoints": checkpoints.history(seen.checkpoints),
        "exceptions": failures.exceptions(seen.failures, at_most),
        "progress": snapshots.progress(seen.progress),
        "metrics": metrics.collection(known, [name for name in known if name in names]),
        "vertices": {vertex.id: _figures(vertex, names) for vertex in seen.job.vertices},
        "stateBytes": _state_bytes(seen.checkpoints.latest_completed),
    }


def _state_bytes(completed: CheckpointStats | None) -> dict[str, int]:
    """By vertex."""
    parts = completed.vertices if completed else ()
    return {part.vertex_id: sum(one.state_bytes for one in part.subtasks) for part in parts}


def _figures(vertex: VertexDetails, names: frozenset[str]) -> list[dict[str, object]]:
    """Its own metrics, and those of its operators: `<operator>.<name>`."""
    sources = [metrics.subtask_metrics(subtask) for subtask in vertex.subtasks]
    known = dict.fromkeys(name for source in sources for name in source)
    wanted = [name for name in known if name.rpartition(".")[2] in names]
    return metrics.aggregate(sources, wanted, metrics.WITHOUT_SKEW) if wanted else []
