"""Requests about the vertices of a job and their subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.rest.answers.jobs import (
    Backpressure,
    SubtaskSummary,
)
from engine.rest.answers.watching import metric_figures, metric_values
from engine.rest.calls.call import Call, of_job, of_vertex


def subtasks(job_id: str, vertex_id: str) -> Call[list[SubtaskSummary]]:
    """The subtasks of a vertex."""
    path = of_vertex(job_id, vertex_id)
    return Call("GET", path, lambda body: list(map(SubtaskSummary.of, body["subtasks"])))


def vertex_metrics(job_id: str, vertex_id: str, names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of a vertex as `<subtask>.<metric>`; without names, nothing."""
    return Call(
        "GET", of_vertex(job_id, vertex_id, "metrics"), metric_values, {"get": ",".join(names)}
    )


def subtask_metrics(
    job_id: str, vertex_id: str, names: Sequence[str]
) -> Call[dict[str, dict[str, float]]]:
    """Metrics of a vertex aggregated over its subtasks: name to min, max, avg, sum, skew."""
    path = of_vertex(job_id, vertex_id, "subtasks/metrics")
    return Call("GET", path, metric_figures, {"get": ",".join(names)})


def metric_names(job_id: str, vertex_id: str | None = None) -> Call[list[str]]:
    """What can be asked of a job, or of each subtask of one of its vertices."""
    path = of_job(job_id, "metrics")
    if vertex_id is not None:
        path = of_vertex(job_id, vertex_id, "subtasks/metrics")
    return Call("GET", path, lambda body: [str(metric["id"]) for metric in body])


def watermarks(job_id: str, vertex_id: str) -> Call[dict[int, int]]:
    """Input watermark by subtask in Flink's unit: epoch ms, inclusive; see `engine_watermark`."""
    return Call("GET", of_vertex(job_id, vertex_id, "watermarks"), _watermarks)


def backpressure(job_id: str, vertex_id: str) -> Call[list[Backpressure]]:
    """How the subtasks spend their time; empty while the engine has no figures."""
    return Call("GET", of_vertex(job_id, vertex_id, "backpressure"), _backpressure)


def _watermarks(body: Sequence[Mapping[str, str]]) -> dict[int, int]:
    return {int(metric["id"].partition(".")[0]): int(metric["value"]) for metric in body}


def _backpressure(body: Mapping[str, Any]) -> list[Backpressure]:
    return [
        Backpressure(
            subtask=part["subtask"],
            level=part["backpressure-level"],
            backpressured=part["ratio"],
            idle=part["idleRatio"],
            busy=part["busyRatio"],
        )
        for part in body.get("subtasks", ())
    ]
