"""Metrics of a running job, asked of the engine when somebody looks, and what each one means.

    metric_names(cluster, job, vertex) ─▶ names ─▶ metric_values(…, names) ─▶ Spread over subtasks
    fact_of(name) ─▶ how it is printed, and by what its value is multiplied for that

Units    by `fact_of`: lengths of time in ms, shares in percent, points in time epoch ms.
Missing  what the engine does not know is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.backends.asked import Answer, asked
from controlplane.backends.models import Cluster
from engine.rest.client import EngineClient
from engine.rest.model.metrics import METRICS, Metric, Scope

MOST_NAMES = 400
"""A job of a hundred operators has thousands; those of one vertex are fewer."""
_LATENCY = "latency."
"""One per source, step, subtask and quantile: too many to choose from."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a metric by its name."""

    format: str
    """As pages print it: rate, count, bytes, dur, percent, time or plain."""
    factor: float
    help: str


@dataclass(frozen=True, slots=True)
class Spread:
    """A metric over subtasks; of a job, or of one subtask, all four are the value."""

    low: float
    mean: float
    high: float
    total: float


def metric_names(cluster: Cluster, job_id: str, vertex_id: str | None) -> Answer[tuple[str, ...]]:
    """What can be asked of a job, or of one of its vertices."""

    def question(engine: EngineClient) -> tuple[str, ...]:
        names = sorted(set(engine.metric_names(job_id, vertex_id)))
        return tuple(name for name in names if not name.startswith(_LATENCY))[:MOST_NAMES]

    return asked(cluster, ("metric names", job_id, vertex_id), question)


def metric_values(
    cluster: Cluster, job_id: str, vertex_id: str | None, names: Sequence[str]
) -> Answer[Mapping[str, Spread]]:
    """Values by name; `names` of one subtask are `<subtask>.<metric>`."""
    single = tuple(name for name in names if name.partition(".")[0].isdecimal())
    together = tuple(name for name in names if name not in single)

    def question(engine: EngineClient) -> Mapping[str, Spread]:
        if vertex_id is None:
            return _single(engine.job_metrics(job_id, names))
        found: dict[str, Spread] = {}
        if together:
            figures = _over_subtasks(engine, job_id, vertex_id, together)
            found |= {name: _spread(one) for name, one in figures.items()}
        if single:
            found |= _single(engine.vertex_metrics(job_id, vertex_id, single))
        return found

    return asked(cluster, ("metrics", job_id, vertex_id, tuple(names)), question)


def fact_of(name: str, vertex_id: str | None) -> Fact:
    """How a metric is printed; a name that the engine does not define is a counter of the job's."""
    scopes = (Scope.JOB,) if vertex_id is None else (Scope.TASK, Scope.OPERATOR)
    # `<operator>.<metric>`, and names of Flink's that hold dots themselves.
    tails = [name, *(name[at + 1 :] for at, char in enumerate(name) if char == ".")]
    found = (METRICS.get((scope, tail)) for tail in tails for scope in scopes)
    metric = next((one for one in found if one is not None), None)
    if metric is None:
        return Fact("plain", 1.0, "Counted by the job's own code, or by Apache Flink.")
    shape, factor = _shape(metric)
    return Fact(shape, factor, metric.help)


def _shape(metric: Metric) -> tuple[str, float]:
    name = metric.exposed.removesuffix("_total")
    if name.endswith("timestamp_seconds"):
        return "time", metric.scale * 1_000
    if name.endswith("_seconds"):
        return "dur", metric.scale * 1_000
    if name.endswith("_ratio"):
        return "percent", metric.scale * 100
    shapes = {"_bytes": "bytes", "_per_second": "rate", "_cores": "plain"}
    return next((to for end, to in shapes.items() if name.endswith(end)), "count"), metric.scale


def _over_subtasks(
    engine: EngineClient, job_id: str, vertex_id: str, names: Sequence[str]
) -> Mapping[str, Mapping[str, float]]:
    """Those of the names that the vertex has. Flink says nothing when it lacks one of them."""
    figures = engine.subtask_metrics(job_id, vertex_id, names)
    if figures or len(names) == 1:
        return figures
    known = frozenset(engine.metric_names(job_id, vertex_id)).intersection(names)
    return engine.subtask_metrics(job_id, vertex_id, sorted(known)) if known else {}


def _spread(figures: Mapping[str, float]) -> Spread:
    return Spread(figures["min"], figures["avg"], figures["max"], figures["sum"])


def _single(values: Mapping[str, str]) -> dict[str, Spread]:
    numbers = {name: _number(text) for name, text in values.items()}
    return {name: Spread(*(one,) * 4) for name, one in numbers.items() if one is not None}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
