"""What a request can be refused for; each refusal knows its status code.

    RestError
     +-- BadRequest          400  malformed id, query, body or file name
     +-- Forbidden           403  a path outside of the configured folders
     +-- NotFound            404  no such job, vertex, checkpoint, operation, artifact, task manager
     +-- Conflict            409  the job is in a state that does not allow it, or its id is taken
     +-- TooLarge            413  the body is over the limit
     +-- TooCostly           422  it needs more time or memory than one request gets
     +-- Unavailable         503  not now: too much is under way, or the job is restarting

Other errors of the engine are rendered too: a UserError is 400, of these SnapshotMissing 410 (a 404
would say that there is no such route), a StorageError 422 (the snapshot that was named cannot be
used), anything else 500. The body is always {"errors": [sentence]}.
"""

from __future__ import annotations

from engine.errors import HeadwaterError, SnapshotMissing, StorageError, UserError


class RestError(HeadwaterError):
    """A request that is refused."""

    status = 500


class BadRequest(RestError):
    """The request itself is malformed."""

    status = 400


class Forbidden(RestError):
    """What the request names is out of bounds."""

    status = 403


class NotFound(RestError):
    """What the request names does not exist."""

    status = 404


class Conflict(RestError):
    """The request makes sense, but not in the present state."""

    status = 409


class TooLarge(RestError):
    """The body is over the limit."""

    status = 413


class TooCostly(RestError):
    """What is asked for needs more time or memory than one request gets."""

    status = 422


class Unavailable(RestError):
    """The request makes sense, but cannot be served now: ask again."""

    status = 503


def job_not_found(job_id: str) -> NotFound:
    """The refusal for an unknown job id."""
    return NotFound(f"job {job_id} not found; list the jobs to see which this engine knows")


def vertex_not_found(vertex_id: str) -> NotFound:
    """The refusal for an unknown vertex id."""
    return NotFound(f"job vertex {vertex_id} not found")


def checkpoint_not_found(checkpoint_id: int) -> NotFound:
    """The refusal for a checkpoint that the history does not hold (any more)."""
    return NotFound(f"could not find checkpointing statistics for checkpoint {checkpoint_id}")


def operation_not_found(operation: str, trigger_id: str) -> NotFound:
    """The refusal for an unknown trigger id; `operation` is a noun such as "savepoint"."""
    return NotFound(f"there is no {operation} operation with trigger id {trigger_id}")


def artifact_not_found(artifact_id: str) -> NotFound:
    """The refusal for an unknown artifact id."""
    return NotFound(f"artifact {artifact_id} does not exist; upload it again")


def task_manager_not_found(task_manager_id: str) -> NotFound:
    """The refusal for an unknown task manager id."""
    return NotFound(f"no task manager is registered under {task_manager_id}")


def status_of(error: HeadwaterError) -> int:
    """The HTTP status code that an error of the engine is answered with."""
    match error:
        case RestError():
            return error.status
        case SnapshotMissing():
            return 410
        case UserError():
            return 400
        case StorageError():
            return 422
        case _:
            return 500
