"""Failures of a job: what workers report, in the form that people read and the store keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from engine.cluster.jobs.restart import Cause
from engine.errors import Domain, HeadwaterError
from engine.rest.model.jobs import Failure
from engine.runtime.control import Failed


def cause_of(failure: Failure) -> Cause:
    """What the restart policy compares."""
    return Cause(failure.domain, failure.name, failure.message, failure.operator)


def worker_lost(reason: str, at_ms: int, task_manager: str) -> Failure:
    """A worker process ended without saying why."""
    return Failure(
        "WorkerLost",
        reason,
        at_ms,
        Domain.EXTERNAL,
        endpoint=task_manager,
        task_manager_id=task_manager,
    )


def raised(error: HeadwaterError, at_ms: int) -> Failure:
    """Something failed in the job manager itself."""
    return Failure(type(error).__name__, str(error), at_ms, error.domain)


def reported(failed: Failed, task: str | None, task_manager: str, at_ms: int) -> Failure:
    """A worker said why it ended."""
    return Failure(
        failed.name,
        failed.message,
        at_ms,
        Domain(failed.domain),
        failed.traceback,
        task=task,
        operator=failed.operator,
        endpoint=task_manager,
        task_manager_id=task_manager,
    )


def to_json(failure: Failure) -> dict[str, Any]:
    """Write a failure."""
    return asdict(failure)


def from_json(body: Mapping[str, Any]) -> Failure:
    """Read what `to_json` gave."""
    concurrent = tuple(from_json(other) for other in body["concurrent"])
    failure = Failure(**{**body, "domain": Domain(body["domain"]), "concurrent": ()})
    return replace(failure, concurrent=concurrent)
