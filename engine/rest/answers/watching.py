"""The answer of `/headwater/watch`: all that those who watch a job want to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.rest.answers.checkpoints import CheckpointList
from engine.rest.answers.jobs import FailureEntry, JobDetail
from engine.rest.answers.snapshots import Progress

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WatchedJob:
    """One job."""

    job: JobDetail
    checkpoints: CheckpointList
    failures: tuple[FailureEntry, ...]
    """Newest first."""
    progress: Progress
    metrics: Mapping[str, str]
    vertices: Mapping[str, Mapping[str, Mapping[str, float]]]
    """Vertex to metric to min, max, avg, sum over its subtasks."""
    state_bytes: Mapping[str, int]
    """By vertex, in the last completed checkpoint."""

    @classmethod
    def of(cls, body: JsonObject) -> WatchedJob:
        """Read an entry."""
        failures = body["exceptions"]["exceptionHistory"]["entries"]
        return cls(
            job=JobDetail.of(body["job"]),
            checkpoints=CheckpointList.of(body["checkpoints"]),
            failures=tuple(map(FailureEntry.of, failures)),
            progress=Progress.of(body["progress"]),
            metrics=metric_values(body["metrics"]),
            vertices={key: metric_figures(one) for key, one in body["vertices"].items()},
            state_bytes=body["stateBytes"],
        )


def watched_jobs(body: JsonObject) -> list[WatchedJob]:
    """Read the answer."""
    return list(map(WatchedJob.of, body["jobs"]))


def metric_values(body: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Values by name; a list of names only has none."""
    return {metric["id"]: metric["value"] for metric in body if "value" in metric}


def metric_figures(body: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Aggregates by name."""
    return {
        metric["id"]: {name: float(value) for name, value in metric.items() if name != "id"}
        for metric in body
    }
