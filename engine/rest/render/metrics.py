"""Metrics in Flink's two forms: values as strings by id, or numbers aggregated over subtasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.rest.model.jobs import JobDetails, MetricValue, SubtaskDetails, VertexDetails
from engine.rest.render.statistics import skew
from engine.rest.render.times import flink_watermark

AGGREGATIONS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "min": min,
    "max": max,
    "avg": lambda values: sum(values) / len(values),
    "sum": lambda values: float(sum(values)),
    "skew": skew,
}
WITHOUT_SKEW: Final = ("min", "max", "avg", "sum")
"""What Flink gives unless asked for more."""


def subtask_metrics(subtask: SubtaskDetails) -> dict[str, MetricValue]:
    """Every metric of a subtask, with its watermarks in Flink's unit."""
    metrics = dict(subtask.metrics)
    if subtask.input_watermark is not None:
        metrics["currentInputWatermark"] = flink_watermark(subtask.input_watermark)
    if subtask.output_watermark is not None:
        metrics["currentOutputWatermark"] = flink_watermark(subtask.output_watermark)
    return metrics


def job_metrics(job: JobDetails) -> dict[str, MetricValue]:
    """Every metric of a job; in Flink latencies are among them."""
    metrics = dict(job.metrics)
    for latency in job.latencies:
        where = (
            f"latency.source_id.{latency.source_id}.operator_id.{latency.vertex_id}"
            f".operator_subtask_index.{latency.subtask}"
        )
        metrics |= {f"{where}.latency_{name}": of for name, of in latency.statistics.items()}
    return metrics


def vertex_metrics(vertex: VertexDetails) -> dict[str, MetricValue]:
    """Every metric of a vertex as `<subtask>.<metric>`."""
    return {
        f"{subtask.index}.{name}": value
        for subtask in vertex.subtasks
        for name, value in subtask_metrics(subtask).items()
    }


def collection(metrics: Mapping[str, MetricValue], wanted: Sequence[str]) -> list[dict[str, str]]:
    """All ids, or the values of the wanted ones; unknown names are dropped, as in Flink."""
    if not wanted:
        return [{"id": name} for name in sorted(metrics)]
    return [{"id": name, "value": text(metrics[name])} for name in wanted if name in metrics]


def aggregate(
    sources: Sequence[Mapping[str, MetricValue]],
    wanted: Sequence[str],
    aggregations: Sequence[str],
) -> list[dict[str, object]]:
    """All ids, or the wanted ones aggregated over the sources that have them as numbers."""
    if not wanted:
        return [{"id": name} for name in sorted({name for source in sources for name in source})]
    return [
        {"id": name} | {how: AGGREGATIONS[how](values) for how in aggregations}
        for name in wanted
        if (values := _numbers(sources, name))
    ]


def watermarks(vertex: VertexDetails) -> list[dict[str, str]]:
    """The input watermark of every subtask that has one; a source has none."""
    return [
        {"id": f"{subtask.index}.currentInputWatermark", "value": str(flink_watermark(mark))}
        for subtask in vertex.subtasks
        if (mark := subtask.input_watermark) is not None
    ]


def text(value: MetricValue) -> str:
    """A metric's value as Java prints it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(sources: Sequence[Mapping[str, MetricValue]], name: str) -> list[float]:
    values = (source.get(name) for source in sources)
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
