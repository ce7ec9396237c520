"""Jobs in Flink's form: the lists, and one job with its vertices and plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.rest.model.jobs import JobDetails, JobStatus, TaskStatus, VertexDetails
from engine.rest.render.plan import flink_plan
from engine.rest.render.times import duration
from engine.rest.render.vertices import status_of, totals_of, vertex_span

SCHEDULER = "Default"
"""Flink's name for a scheduler that waits for all the slots that a job needs."""


def ids(jobs: Sequence[JobDetails]) -> dict[str, object]:
    """The body of `/jobs`."""
    return {"jobs": [{"id": job.id, "status": job.status} for job in jobs]}


def overview(jobs: Sequence[JobDetails], now_ms: int) -> dict[str, object]:
    """The body of `/jobs/overview`; Flink's command line needs every field of it."""
    return {"jobs": [_overview(job, now_ms) for job in jobs]}


def details(job: JobDetails, now_ms: int) -> dict[str, object]:
    """The body of `/jobs/:id`."""
    vertices = Counter(status_of(vertex) for vertex in job.vertices)
    return {
        "jid": job.id,
        "application-id": job.id,
        "name": job.name,
        "isStoppable": False,
        "state": job.status,
        "job-type": "STREAMING",
        "schedulerType": SCHEDULER,
        "start-time": job.start_ms,
        "end-time": job.end_ms,
        "duration": duration(job.start_ms, job.end_ms, now_ms),
        "maxParallelism": job.max_parallelism,
        "now": now_ms,
        "timestamps": {status.value: job.timestamps.get(status, 0) for status in JobStatus},
        "vertices": [_vertex(job, vertex, now_ms) for vertex in job.vertices],
        "status-counts": by_status(vertices),
        "plan": flink_plan(job.id, job.plan),
        "pending-operators": 0,
        "headwater": {"waiting-for": job.waiting_for},
    }


def config(job: JobDetails) -> dict[str, object]:
    """The body of `/jobs/:id/config`."""
    return {
        "jid": job.id,
        "name": job.name,
        "execution-config": {
            "restart-strategy": job.restart_strategy,
            "job-parallelism": job.parallelism,
            "object-reuse-mode": False,
            "user-config": dict(job.settings),
        },
    }


def resource_requirements(job: JobDetails) -> dict[str, object]:
    """The body of `/jobs/:id/resource-requirements`."""
    return {
        vertex.id: {"parallelism": {"lowerBound": 1, "upperBound": vertex.parallelism}}
        for vertex in job.vertices
    }


def by_status(counts: Counter[TaskStatus]) -> dict[str, int]:
    """Every state with its count, as Flink lists them."""
    return {status.value: counts[status] for status in TaskStatus}


def _overview(job: JobDetails, now_ms: int) -> dict[str, object]:
    return {
        "jid": job.id,
        "name": job.name,
        "jobType": "STREAMING",
        "schedulerType": SCHEDULER,
        "start-time": job.start_ms,
        "end-time": job.end_ms,
        "duration": duration(job.start_ms, job.end_ms, now_ms),
        "state": job.status,
        "last-modification": max(job.timestamps.values(), default=job.start_ms),
        "tasks": _tasks(job.vertices),
        "pending-operators": 0,
        "headwater": {"waiting-for": job.waiting_for},
    }


def _tasks(vertices: Iterable[VertexDetails]) -> dict[str, int]:
    counts = Counter(subtask.status for vertex in vertices for subtask in vertex.subtasks)
    return {"total": counts.total()} | {
        status.value.lower(): counts[status] for status in TaskStatus
    }


def _vertex(job: JobDetails, vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    start_ms, end_ms = vertex_span(vertex)
    return {
        "id": vertex.id,
        # One slot holds a slice of the whole job: every vertex shares the job's only group.
        "slotSharingGroupId": job.id,
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": vertex.parallelism,
        "status": status_of(vertex),
        "start-time": start_ms,
        "end-time": end_ms,
        "duration": duration(start_ms, end_ms, now_ms),
        "tasks": by_status(Counter(subtask.status for subtask in vertex.subtasks)),
        "metrics": totals_of(vertex.subtasks),
    }
