"""All values of all metrics at one moment, for reporters: what REST tells piece by piece.

Cost     some 40 samples per subtask: make them on a thread when there are many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.elements import MAX_TIME, MIN_TIME
from engine.rest.model.cluster import ClusterInfo, TaskManagerInfo
from engine.rest.model.jobs import JobDetails, Latency, MetricValue, SubtaskDetails, VertexDetails
from engine.rest.model.metrics import COUNTED, LATENCY, METRICS_OF, Sample, Scope, number_of
from engine.rest.render.cluster import job_manager_metrics
from engine.rest.render.metrics import subtask_metrics

Labels = Mapping[str, str]

QUANTILES = {"median": "0.5", "p95": "0.95", "p99": "0.99", "max": "1"}
"""Of the statistics that Flink has, those that people look at."""


def samples(cluster: ClusterInfo, jobs: Sequence[JobDetails]) -> list[Sample]:
    """Every value, in no order; jobs that have ended have none."""
    found = list(_of(Scope.JOB_MANAGER, job_manager_metrics(cluster, jobs), {}))
    for manager in cluster.task_managers:
        found += _task_manager(manager)
    for job in jobs:
        if not job.status.terminal:
            found += _job(job)
    return found


def _task_manager(manager: TaskManagerInfo) -> Iterator[Sample]:
    labels = {"task_manager": manager.address}
    yield from _of(Scope.TASK_MANAGER, manager.metrics, labels)
    for slot in manager.allocated:
        of_worker = {**labels, "job_id": slot.job_id, "slot": str(slot.index)}
        yield from _of(Scope.WORKER, slot.metrics, of_worker)


def _job(job: JobDetails) -> Iterator[Sample]:
    labels = {"job_id": job.id, "job": job.name}
    yield from _of(Scope.JOB, job.metrics, labels)
    yield from _latencies(job.latencies, labels)
    for vertex in job.vertices:
        for subtask in vertex.subtasks:
            yield from _subtask(vertex, subtask, labels)


def _latencies(latencies: Iterable[Latency], of_job: Labels) -> Iterator[Sample]:
    for latency in latencies:
        labels = {**of_job, "source_id": latency.source_id, "task_id": latency.vertex_id}
        labels["subtask"] = str(latency.subtask)
        for name, quantile in QUANTILES.items():
            yield Sample(LATENCY, {**labels, "quantile": quantile}, latency.statistics[name])


def _subtask(vertex: VertexDetails, subtask: SubtaskDetails, of_job: Labels) -> Iterator[Sample]:
    labels = {**of_job, "task": vertex.name, "task_id": vertex.id, "subtask": str(subtask.index)}
    operators: dict[str, Labels] = {}
    known = METRICS_OF[Scope.TASK]
    for name, value in subtask_metrics(subtask).items():
        number = number_of(value)
        if number is None or value in (MIN_TIME, MAX_TIME):
            continue  # a watermark at an end of the scale is no moment
        if (metric := known.get(name)) is not None:
            yield Sample(metric, labels, number)
            continue
        operator, _, own = name.rpartition(".")
        if operator:
            of_operator = operators.setdefault(operator, {**labels, "operator": operator})
            yield from _operator(own, of_operator, number)


def _operator(name: str, labels: Labels, number: float) -> Iterator[Sample]:
    metric = METRICS_OF[Scope.OPERATOR].get(name)
    if metric is not None:
        yield Sample(metric, labels, number)
    elif not name.endswith("PerSecond"):  # whoever has a counter has its rate
        yield Sample(COUNTED, labels, number, {"counter": name})


def _of(scope: Scope, values: Mapping[str, MetricValue], labels: Labels) -> Iterator[Sample]:
    known = METRICS_OF[scope]
    for name, value in values.items():
        metric, number = known.get(name), number_of(value)
        if metric is not None and number is not None:
            yield Sample(metric, labels, number)
