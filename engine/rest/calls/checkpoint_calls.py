"""Requests about checkpoints and savepoints: their history, and to take or dispose of one."""

from __future__ import annotations

from engine.rest.answers.checkpoints import (
    CheckpointConfig,
    CheckpointEntry,
    CheckpointList,
    OperationStatus,
    SubtaskPart,
    trigger_id_of,
)
from engine.rest.answers.snapshots import SavepointSummary
from engine.rest.calls.call import Call, of_job
from engine.rest.model.requests import (
    SavepointRequest,
    StopRequest,
)


def checkpoints(job_id: str) -> Call[CheckpointList]:
    """The checkpoint history of a job."""
    return Call("GET", of_job(job_id, "checkpoints"), CheckpointList.of)


def checkpoint(job_id: str, checkpoint_id: int) -> Call[CheckpointEntry]:
    """One checkpoint with the part of each vertex."""
    return Call("GET", of_job(job_id, f"checkpoints/details/{checkpoint_id}"), CheckpointEntry.of)


def checkpoint_subtasks(job_id: str, checkpoint_id: int, vertex_id: str) -> Call[list[SubtaskPart]]:
    """One checkpoint: the part of one vertex by subtasks."""
    path = of_job(job_id, f"checkpoints/details/{checkpoint_id}/subtasks/{vertex_id}")
    return Call("GET", path, lambda body: list(map(SubtaskPart.of, body["subtasks"])))


def checkpoint_config(job_id: str) -> Call[CheckpointConfig]:
    """How a job takes checkpoints."""
    return Call("GET", of_job(job_id, "checkpoints/config"), CheckpointConfig.of)


def trigger_savepoint(job_id: str, request: SavepointRequest) -> Call[str]:
    """Begin a savepoint; the trigger id to poll."""
    body = {
        "target-directory": request.target,
        "cancel-job": request.cancel,
        "formatType": "CANONICAL",
        "triggerId": request.trigger_id,
    }
    return Call("POST", of_job(job_id, "savepoints"), trigger_id_of, body=body)


def stop(job_id: str, request: StopRequest) -> Call[str]:
    """Begin to stop with a savepoint; the trigger id to poll with `savepoint_status`."""
    body = {
        "targetDirectory": request.target,
        "drain": request.drain,
        "formatType": "CANONICAL",
        "triggerId": request.trigger_id,
    }
    return Call("POST", of_job(job_id, "stop"), trigger_id_of, body=body)


def savepoint_status(job_id: str, trigger_id: str) -> Call[OperationStatus]:
    """Where a savepoint or a stop stands."""
    return Call("GET", of_job(job_id, f"savepoints/{trigger_id}"), OperationStatus.of)


def trigger_checkpoint(
    job_id: str, trigger_id: str | None = None, *, full: bool = False
) -> Call[str]:
    """Begin a checkpoint now, building on none if `full`; the trigger id to poll."""
    body = {"checkpointType": "FULL" if full else "CONFIGURED", "triggerId": trigger_id}
    return Call("POST", of_job(job_id, "checkpoints"), trigger_id_of, body=body)


def checkpoint_status(job_id: str, trigger_id: str) -> Call[OperationStatus]:
    """Where a manual checkpoint stands."""
    return Call("GET", of_job(job_id, f"checkpoints/{trigger_id}"), OperationStatus.of)


def dispose_savepoint(path: str) -> Call[str]:
    """Begin to delete a savepoint; the trigger id to poll."""
    return Call("POST", "/savepoint-disposal", trigger_id_of, body={"savepoint-path": path})


def disposal_status(trigger_id: str) -> Call[OperationStatus]:
    """Where a disposal stands."""
    return Call("GET", f"/savepoint-disposal/{trigger_id}", OperationStatus.of)


def savepoint(path: str) -> Call[SavepointSummary]:
    """What a snapshot holds; only our engine."""
    return Call("GET", "/headwater/savepoints", SavepointSummary.of, {"path": path})
