"""Failures and the results of asynchronous operations in Flink's form.

A failed operation is COMPLETED with a failure cause: Flink has no other way to say it.
"""

from __future__ import annotations

from engine.rest.model.jobs import Failure, FailureHistory, JobDetails, JobStatus
from engine.rest.model.operations import TriggerStatus
from engine.rest.render.java import serialized_throwable

IN_PROGRESS = {"id": "IN_PROGRESS"}
COMPLETED = {"id": "COMPLETED"}

_APPLICATION_STATUS = {
    JobStatus.FINISHED: "SUCCEEDED",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELED: "CANCELED",
}


def exceptions(history: FailureHistory, at_most: int | None) -> dict[str, object]:
    """The body of `/jobs/:id/exceptions`."""
    shown = history.entries if at_most is None else history.entries[:at_most]
    truncated = history.truncated or len(shown) < len(history.entries)
    entries = [_entry(failure) for failure in shown]
    return {"exceptionHistory": {"entries": entries, "truncated": truncated}}


def execution_result(job: JobDetails) -> dict[str, object]:
    """The body of `/jobs/:id/execution-result`."""
    if not job.status.terminal:
        return {"status": IN_PROGRESS}
    result: dict[str, object] = {
        "id": job.id,
        "name": job.name,
        "application-status": _APPLICATION_STATUS[job.status],
        "accumulator-results": {},
        "net-runtime": job.end_ms - job.start_ms,
        "application-id": job.id,
        "start-time": job.start_ms,
        "end-time": job.end_ms,
    }
    if job.failure is not None:
        trace = f"{job.failure.message}\n{job.failure.traceback}".rstrip()
        result["failure-cause"] = throwable(job.failure.message, trace)
    return {"status": COMPLETED, "job-execution-result": result}


def savepoint_operation(status: TriggerStatus) -> dict[str, object]:
    """The answer to a poll of a savepoint, a stop or a disposal."""
    if not status.done:
        return {"status": IN_PROGRESS, "operation": None}
    if status.failure is not None:
        return {"status": COMPLETED, "operation": {"failure-cause": throwable(status.failure)}}
    located = {} if status.location is None else {"location": status.location}
    return {"status": COMPLETED, "operation": located}


def checkpoint_operation(status: TriggerStatus) -> dict[str, object]:
    """The answer to a poll of a manual checkpoint; Flink spells its failure in another way."""
    if not status.done:
        return {"status": IN_PROGRESS, "operation": None}
    if status.failure is not None:
        return {"status": COMPLETED, "operation": {"failureCause": throwable(status.failure)}}
    return {"status": COMPLETED, "operation": {"checkpointId": status.checkpoint_id}}


def stack_trace(failure: Failure) -> str:
    """The message first, so that its first line says it all, then Python's traceback."""
    first = f"{failure.name}: {failure.message}"
    return f"{first}\n{failure.traceback}" if failure.traceback else first


def throwable(message: str, trace: str | None = None) -> dict[str, str]:
    """A cause that both people and Flink's command line can read."""
    return {
        "class": "java.lang.Exception",
        "stack-trace": trace or message,
        "serialized-throwable": serialized_throwable(message),
    }


def _entry(failure: Failure) -> dict[str, object]:
    entry: dict[str, object] = {
        "exceptionName": failure.name,
        "stacktrace": stack_trace(failure),
        "timestamp": failure.at_ms,
        "failureLabels": _labels(failure),
    }
    placed = {
        "taskName": failure.task,
        "endpoint": failure.endpoint,
        "taskManagerId": failure.task_manager_id,
    }
    entry |= {name: value for name, value in placed.items() if value is not None}
    entry["concurrentExceptions"] = [_entry(other) for other in failure.concurrent]
    return entry


def _labels(failure: Failure) -> dict[str, str]:
    """What Flink has no field for."""
    known = {"operator": failure.operator, "verdict": failure.verdict}
    labels = {name: value for name, value in known.items() if value is not None}
    return {"domain": failure.domain.value, **labels}
