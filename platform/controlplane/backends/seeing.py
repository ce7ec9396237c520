"""From an engine's answers to sightings. Pure.

Graph     which operators of a vertex read from outside, and which write to it
METRICS   what is asked for of each vertex
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.backends.plans import plan_json
from controlplane.backends.sightings import (
    CheckpointSighting,
    FailureSighting,
    JobSighting,
    RestoreSighting,
    VertexSighting,
    total,
)
from engine.rest.answers.checkpoints import CheckpointEntry, CheckpointList
from engine.rest.answers.jobs import FailureEntry, JobDetail, JobPlan, VertexSummary
from engine.rest.answers.snapshots import Progress
from engine.rest.model.jobs import JobStatus, TaskStatus

MAX_INT64 = 2**63 - 1
FLINK_ENDS = (-(2**63), MAX_INT64)
"""Flink's watermarks before the first row and after the last one."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Which operators read from outside and which write to it, by vertex."""

    sources: Mapping[str, tuple[str, ...]]
    sinks: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, plan: JobPlan, engine_plan: Mapping[str, Any] | None) -> Graph:
        """From the engine's own plan, or from the shape of Flink's."""
        if engine_plan is not None:
            return cls(_by_kind(engine_plan, "source"), _by_kind(engine_plan, "sink"))
        feeding = {edge.source for node in plan.nodes for edge in node.inputs}
        return cls(
            {node.id: () for node in plan.nodes if not node.inputs},
            {node.id: () for node in plan.nodes if node.id not in feeding},
        )

    def metrics_of(self, vertex_id: str) -> list[str]:
        """Names to ask for."""
        read = [f"{name}.numRecordsOutPerSecond" for name in self.sources.get(vertex_id, ())]
        written = [f"{name}.numRecordsInPerSecond" for name in self.sinks.get(vertex_id, ())]
        return [*METRICS, *read, *written]


METRICS = (
    "numRecordsInPerSecond",
    "numRecordsOutPerSecond",
    "busyTimeMsPerSecond",
    "backPressuredTimeMsPerSecond",
    "idleTimeMsPerSecond",
    "currentInputWatermark",
    "currentOutputWatermark",
)

JOB_METRICS = ("numRestarts", "uptime")
"""What is asked for of each job."""

MAX_FAILURES = 20
"""As many as engines show by themselves."""

Metrics = Mapping[str, Mapping[str, float]]


def _by_kind(plan: Mapping[str, Any], kind: str) -> dict[str, tuple[str, ...]]:
    found = {
        vertex["id"]: tuple(
            operator["name"] for operator in vertex["operators"] if operator["kind"] == kind
        )
        for vertex in plan["vertices"]
    }
    return {vertex: names for vertex, names in found.items() if names}


def vertex_sighting(
    vertex: VertexSummary, metrics: Metrics, graph: Graph, state_bytes: int | None = None
) -> VertexSighting:
    """One vertex: its summary and the figures of its subtasks together."""
    read, written = graph.sources.get(vertex.id), graph.sinks.get(vertex.id)
    out = _figure(metrics, "numRecordsOutPerSecond", "sum")
    # A source's vertex receives nothing, a sink's sends nothing: there the operator itself counts.
    in_rate = _figure(metrics, "numRecordsInPerSecond", "sum")
    if read is not None:
        in_rate = _operators(metrics, read, "numRecordsOutPerSecond") if read else out
    if written is not None and not out:
        inside = _operators(metrics, written, "numRecordsInPerSecond")
        out = inside if written else _figure(metrics, "numRecordsInPerSecond", "sum")
    return VertexSighting(
        id=vertex.id,
        state=vertex.status.value,
        parallelism=vertex.parallelism,
        running=vertex.tasks.get(TaskStatus.RUNNING.value, 0),
        in_rate=in_rate,
        out_rate=out,
        busy=_percent(metrics, "busyTimeMsPerSecond", "max"),
        backpressured=_percent(metrics, "backPressuredTimeMsPerSecond", "max"),
        idle=_percent(metrics, "idleTimeMsPerSecond", "min"),
        watermark_ms=_watermark(metrics, source=read is not None),
        is_source=read is not None,
        is_sink=written is not None,
        skew=_skew(metrics),
        state_bytes=state_bytes,
    )


def _operators(metrics: Metrics, names: Sequence[str], figure: str) -> float | None:
    return total(_figure(metrics, f"{name}.{figure}", "sum") for name in names)


def _figure(metrics: Metrics, name: str, aggregate: str) -> float | None:
    value = metrics.get(name, {}).get(aggregate)
    return value if value is not None and math.isfinite(value) else None


def _skew(metrics: Metrics) -> float | None:
    """By what a vertex takes; by what it gives where it takes nothing."""
    for name in ("numRecordsInPerSecond", "numRecordsOutPerSecond"):
        most, mean = _figure(metrics, name, "max"), _figure(metrics, name, "avg")
        if most is not None and mean:
            return round(most / mean, 2)
    return None


def _percent(metrics: Metrics, name: str, aggregate: str) -> float | None:
    value = _figure(metrics, name, aggregate)
    return None if value is None else round(min(100.0, max(0.0, value / 10.0)), 1)


def _watermark(metrics: Metrics, *, source: bool) -> float | None:
    """Flink's is inclusive: no later row has exactly that time or less."""
    name = "currentOutputWatermark" if source else "currentInputWatermark"
    value = _figure(metrics, name, "min")
    if value is None or not FLINK_ENDS[0] / 2_000 < value < FLINK_ENDS[1] / 2_000:
        return None
    return value + 1


def sighting_of(
    detail: JobDetail,
    vertices: Sequence[VertexSighting],
    checkpoints: CheckpointList | None,
    progress: Progress | None,
    failures: Sequence[FailureEntry],
    numbers: Mapping[str, str],
) -> JobSighting:
    """One job, of all that was asked; what the engine has no answer to is None or empty."""
    since_ms = detail.timestamps.get(JobStatus(detail.state), 0)
    history = checkpoints.history if checkpoints else ()
    completed = checkpoints.latest_completed if checkpoints else None
    event_us = progress.event_time_us if progress else None
    return JobSighting(
        id=detail.id,
        state=detail.state.value,
        since_ms=since_ms or None,
        waiting_for=detail.waiting_for or "",
        uptime_ms=_whole(numbers.get("uptime")),
        restarts=_whole(numbers.get("numRestarts")),
        plan=plan_json(detail.plan),
        vertices=tuple(vertices),
        checkpoints=tuple(map(_checkpoint, history)),
        completed=_checkpoint(completed) if completed else None,
        failures=tuple(map(_failure, failures)),
        event_ms=_millis(event_us),
        newest_ms=_newest(progress),
        pending_rows=progress.pending_rows if progress else None,
        restored=_restore(checkpoints),
    )


def _failure(entry: FailureEntry) -> FailureSighting:
    return FailureSighting(
        at_ms=entry.at_ms,
        name=entry.name,
        sentence=entry.sentence,
        task=entry.task or "",
        trace=entry.trace,
        domain=entry.domain or "",
        operator=entry.operator or "",
        task_manager=entry.task_manager_id or "",
        verdict=entry.verdict or "",
        echoes=tuple(map(_failure, entry.echoes)),
    )


def _restore(checkpoints: CheckpointList | None) -> RestoreSighting | None:
    last = checkpoints.restored if checkpoints else None
    if last is None:
        return None
    return RestoreSighting(last.id, last.restored_ms, last.is_savepoint, last.external_path or "")


def _checkpoint(entry: CheckpointEntry) -> CheckpointSighting:
    ended = entry.status.value != "IN_PROGRESS"
    end_ms = entry.failed_ms if entry.failed_ms else entry.triggered_ms + entry.total.duration_ms
    return CheckpointSighting(
        id=entry.id,
        is_savepoint=entry.is_savepoint,
        status=entry.status.value.lower(),
        triggered_ms=entry.triggered_ms,
        duration_ms=max(0, end_ms - entry.triggered_ms) if ended else None,
        size_bytes=entry.total.state_bytes if ended else None,
        path=entry.external_path or "",
        failure=entry.failure or "",
        detail={
            "type": entry.kind,
            "checkpointed_bytes": entry.total.checkpointed_bytes,
            "subtasks": entry.total.subtasks,
            "acknowledged": entry.total.acknowledged,
            "reason": entry.reason,
        },
    )


def _newest(progress: Progress | None) -> float | None:
    sources = progress.sources if progress else ()
    known = [source.newest_us for source in sources if source.newest_us is not None]
    return _millis(max(known)) if known else None


def _millis(micros: int | None) -> float | None:
    """Epoch ms; None for what is no date: unknown, or after the end of all input."""
    return None if micros is None or abs(micros) >= MAX_INT64 else micros / 1_000


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else int(float(text))
    except (ValueError, OverflowError):
        return None
