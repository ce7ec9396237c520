"""Requests about jobs: what there is, how one fares, and its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.rest.answers.jobs import (
    FailureEntry,
    JobDetail,
    JobResult,
    JobSummary,
)
from engine.rest.answers.snapshots import Progress
from engine.rest.answers.watching import metric_values
from engine.rest.calls.call import Call, nothing, of_job
from engine.rest.model.jobs import JobStatus


def jobs() -> Call[list[JobSummary]]:
    """All jobs, with counts of tasks."""
    return Call("GET", "/jobs/overview", lambda body: list(map(JobSummary.of, body["jobs"])))


def job(job_id: str) -> Call[JobDetail]:
    """One job with vertices and plan."""
    return Call("GET", of_job(job_id), JobDetail.of)


def job_status(job_id: str) -> Call[JobStatus]:
    """The state of one job; fresher than `job` on a Flink cluster."""
    return Call("GET", of_job(job_id, "status"), lambda body: JobStatus(body["status"]))


def job_result(job_id: str) -> Call[JobResult]:
    """How a job ended."""
    return Call("GET", of_job(job_id, "execution-result"), JobResult.of)


def job_failures(job_id: str, at_most: int = 10) -> Call[list[FailureEntry]]:
    """Failures of a job, newest first."""
    return Call(
        "GET",
        of_job(job_id, "exceptions"),
        lambda body: list(map(FailureEntry.of, body["exceptionHistory"]["entries"])),
        {"maxExceptions": str(at_most)},
    )


def job_metrics(job_id: str, names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of a job; unknown names are left out."""
    return Call("GET", of_job(job_id, "metrics"), metric_values, {"get": ",".join(names)})


def job_settings(job_id: str) -> Call[dict[str, object]]:
    """What `/jobs/:id/config` says under `execution-config`."""
    return Call("GET", of_job(job_id, "config"), lambda body: dict(body["execution-config"]))


def progress(job_id: str) -> Call[Progress]:
    """How far a job is in event time; only our engine."""
    return Call("GET", f"/headwater{of_job(job_id, 'progress')}", Progress.of)


def engine_plan(job_id: str) -> Call[dict[str, Any]]:
    """The plan in our engine's own form: operators, states, sinks; only our engine."""
    return Call("GET", f"/headwater{of_job(job_id, 'plan')}", lambda body: dict(body["plan"]))


def cancel(job_id: str) -> Call[None]:
    """Begin to cancel a job."""
    return Call("PATCH", of_job(job_id), nothing, {"mode": "cancel"})
