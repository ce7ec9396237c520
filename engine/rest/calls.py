"""Every request that the client knows: what to send, and how to read the answer.

    calls.job(id) ─▶ Call[JobDetail] ─▶ EngineClient or AsyncEngineClient sends it ─▶ JobDetail

A call is a value without I/O, so the blocking and the awaiting client share all of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from engine.rest.answers.checkpoints import (
    CheckpointConfig,
    CheckpointEntry,
    CheckpointList,
    OperationStatus,
    SubtaskPart,
    trigger_id_of,
)
from engine.rest.answers.cluster import (
    Capabilities,
    LocalTaskManagers,
    Overview,
    TaskManager,
    UploadedFile,
)
from engine.rest.answers.jobs import (
    Backpressure,
    FailureEntry,
    JobDetail,
    JobPlan,
    JobResult,
    JobSummary,
    SubtaskSummary,
)
from engine.rest.answers.snapshots import PreflightReport, Progress, SavepointSummary
from engine.rest.answers.watching import metric_figures, metric_values
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import (
    PreflightRequest,
    Program,
    RunRequest,
    SavepointRequest,
    StopRequest,
)

T = TypeVar("T")

LOCAL = "/headwater/taskmanagers"

BUILD_S = 50.0
"""The engine runs the job file to build its graph, in a new process, within a limit of its own, of
which it must have time to tell."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request and the reader of its answer."""

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, object] | None = None
    file: tuple[str, bytes] | None = None
    """Name and content of an upload."""
    needs_s: float = 0.0
    """How long a good answer may take; the client waits so long even if it is less patient."""


# The engine.


def overview() -> Call[Overview]:
    """Totals of the engine."""
    return Call("GET", "/overview", Overview.of)


def capabilities() -> Call[Capabilities]:
    """What the engine is; a Flink cluster answers NotFound."""
    return Call("GET", "/headwater/capabilities", Capabilities.of)


def task_managers() -> Call[list[TaskManager]]:
    """Registered task managers."""
    return Call(
        "GET", "/taskmanagers", lambda body: list(map(TaskManager.of, body["taskmanagers"]))
    )


def task_manager_metrics(manager_id: str, names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of one task manager; unknown names are left out."""
    path = f"/taskmanagers/{quote(manager_id, safe=':')}/metrics"
    return Call("GET", path, metric_values, {"get": ",".join(names)})


def job_manager_metrics(names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of the job manager; unknown names are left out."""
    return Call("GET", "/jobmanager/metrics", metric_values, {"get": ",".join(names)})


def local_task_managers() -> Call[LocalTaskManagers]:
    """Task managers that the job manager starts itself."""
    return Call("GET", LOCAL, LocalTaskManagers.of)


def start_task_manager(name: str | None = None) -> Call[str]:
    """Start one more, or a lost one again; its name."""
    return Call("POST", LOCAL, lambda body: str(body["name"]), body={"name": name})


def stop_task_manager(name: str) -> Call[None]:
    """End a task manager, whoever started it; it stays away."""
    return Call("DELETE", f"{LOCAL}/{quote(name, safe='')}", lambda body: None)


def respawn_task_managers(wish: bool) -> Call[LocalTaskManagers]:
    """Whether task managers that are lost are started again."""
    return Call("PATCH", LOCAL, LocalTaskManagers.of, body={"respawn": wish})


# Jobs.


def jobs() -> Call[list[JobSummary]]:
    """All jobs, with counts of tasks."""
    return Call("GET", "/jobs/overview", lambda body: list(map(JobSummary.of, body["jobs"])))


def job(job_id: str) -> Call[JobDetail]:
    """One job with vertices and plan."""
    return Call("GET", _job(job_id), JobDetail.of)


def job_status(job_id: str) -> Call[JobStatus]:
    """The state of one job; fresher than `job` on a Flink cluster."""
    return Call("GET", _job(job_id, "status"), lambda body: JobStatus(body["status"]))


def job_result(job_id: str) -> Call[JobResult]:
    """How a job ended."""
    return Call("GET", _job(job_id, "execution-result"), JobResult.of)


def job_failures(job_id: str, at_most: int = 10) -> Call[list[FailureEntry]]:
    """Failures of a job, newest first."""
    return Call(
        "GET",
        _job(job_id, "exceptions"),
        lambda body: list(map(FailureEntry.of, body["exceptionHistory"]["entries"])),
        {"maxExceptions": str(at_most)},
    )


def job_metrics(job_id: str, names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of a job; unknown names are left out."""
    return Call("GET", _job(job_id, "metrics"), metric_values, {"get": ",".join(names)})


def job_settings(job_id: str) -> Call[dict[str, object]]:
    """What `/jobs/:id/config` says under `execution-config`."""
    return Call("GET", _job(job_id, "config"), lambda body: dict(body["execution-config"]))


def progress(job_id: str) -> Call[Progress]:
    """How far a job is in event time; only our engine."""
    return Call("GET", f"/headwater{_job(job_id, 'progress')}", Progress.of)


def engine_plan(job_id: str) -> Call[dict[str, Any]]:
    """The plan in our engine's own form: operators, states, sinks; only our engine."""
    return Call("GET", f"/headwater{_job(job_id, 'plan')}", lambda body: dict(body["plan"]))


# Vertices.


def subtasks(job_id: str, vertex_id: str) -> Call[list[SubtaskSummary]]:
    """The subtasks of a vertex."""
    path = _vertex(job_id, vertex_id)
    return Call("GET", path, lambda body: list(map(SubtaskSummary.of, body["subtasks"])))


def vertex_metrics(job_id: str, vertex_id: str, names: Sequence[str]) -> Call[dict[str, str]]:
    """Metrics of a vertex as `<subtask>.<metric>`; without names, nothing."""
    return Call(
        "GET", _vertex(job_id, vertex_id, "metrics"), metric_values, {"get": ",".join(names)}
    )


def subtask_metrics(
    job_id: str, vertex_id: str, names: Sequence[str]
) -> Call[dict[str, dict[str, float]]]:
    """Metrics of a vertex aggregated over its subtasks: name to min, max, avg, sum, skew."""
    path = _vertex(job_id, vertex_id, "subtasks/metrics")
    return Call("GET", path, metric_figures, {"get": ",".join(names)})


def metric_names(job_id: str, vertex_id: str | None = None) -> Call[list[str]]:
    """What can be asked of a job, or of each subtask of one of its vertices."""
    path = _job(job_id, "metrics")
    if vertex_id is not None:
        path = _vertex(job_id, vertex_id, "subtasks/metrics")
    return Call("GET", path, lambda body: [str(metric["id"]) for metric in body])


def watermarks(job_id: str, vertex_id: str) -> Call[dict[int, int]]:
    """Input watermark by subtask in Flink's unit: epoch ms, inclusive; see `engine_watermark`."""
    return Call("GET", _vertex(job_id, vertex_id, "watermarks"), _watermarks)


def backpressure(job_id: str, vertex_id: str) -> Call[list[Backpressure]]:
    """How the subtasks spend their time; empty while the engine has no figures."""
    return Call("GET", _vertex(job_id, vertex_id, "backpressure"), _backpressure)


# Checkpoints and savepoints.


def checkpoints(job_id: str) -> Call[CheckpointList]:
    """The checkpoint history of a job."""
    return Call("GET", _job(job_id, "checkpoints"), CheckpointList.of)


def checkpoint(job_id: str, checkpoint_id: int) -> Call[CheckpointEntry]:
    """One checkpoint with the part of each vertex."""
    return Call("GET", _job(job_id, f"checkpoints/details/{checkpoint_id}"), CheckpointEntry.of)


def checkpoint_subtasks(job_id: str, checkpoint_id: int, vertex_id: str) -> Call[list[SubtaskPart]]:
    """One checkpoint: the part of one vertex by subtasks."""
    path = _job(job_id, f"checkpoints/details/{checkpoint_id}/subtasks/{vertex_id}")
    return Call("GET", path, lambda body: list(map(SubtaskPart.of, body["subtasks"])))


def checkpoint_config(job_id: str) -> Call[CheckpointConfig]:
    """How a job takes checkpoints."""
    return Call("GET", _job(job_id, "checkpoints/config"), CheckpointConfig.of)


def trigger_savepoint(job_id: str, request: SavepointRequest) -> Call[str]:
    """Begin a savepoint; the trigger id to poll."""
    body = {
        "target-directory": request.target,
        "cancel-job": request.cancel,
        "formatType": "CANONICAL",
        "triggerId": request.trigger_id,
    }
    return Call("POST", _job(job_id, "savepoints"), trigger_id_of, body=body)


def stop(job_id: str, request: StopRequest) -> Call[str]:
    """Begin to stop with a savepoint; the trigger id to poll with `savepoint_status`."""
    body = {
        "targetDirectory": request.target,
        "drain": request.drain,
        "formatType": "CANONICAL",
        "triggerId": request.trigger_id,
    }
    return Call("POST", _job(job_id, "stop"), trigger_id_of, body=body)


def savepoint_status(job_id: str, trigger_id: str) -> Call[OperationStatus]:
    """Where a savepoint or a stop stands."""
    return Call("GET", _job(job_id, f"savepoints/{trigger_id}"), OperationStatus.of)


def trigger_checkpoint(
    job_id: str, trigger_id: str | None = None, *, full: bool = False
) -> Call[str]:
    """Begin a checkpoint now, building on none if `full`; the trigger id to poll."""
    body = {"checkpointType": "FULL" if full else "CONFIGURED", "triggerId": trigger_id}
    return Call("POST", _job(job_id, "checkpoints"), trigger_id_of, body=body)


def checkpoint_status(job_id: str, trigger_id: str) -> Call[OperationStatus]:
    """Where a manual checkpoint stands."""
    return Call("GET", _job(job_id, f"checkpoints/{trigger_id}"), OperationStatus.of)


def dispose_savepoint(path: str) -> Call[str]:
    """Begin to delete a savepoint; the trigger id to poll."""
    return Call("POST", "/savepoint-disposal", trigger_id_of, body={"savepoint-path": path})


def disposal_status(trigger_id: str) -> Call[OperationStatus]:
    """Where a disposal stands."""
    return Call("GET", f"/savepoint-disposal/{trigger_id}", OperationStatus.of)


def savepoint(path: str) -> Call[SavepointSummary]:
    """What a snapshot holds; only our engine."""
    return Call("GET", "/headwater/savepoints", SavepointSummary.of, {"path": path})


def preflight(request: PreflightRequest) -> Call[PreflightReport]:
    """Would this program start from this snapshot? Only our engine."""
    body = _program(request.program) | _allowance(request.allow_non_restored)
    body |= {"artifact": request.program.artifact_id, "savepointPath": request.savepoint_path}
    body |= _acceptance(request.accept_missing_input)
    return Call("POST", "/headwater/preflight", PreflightReport.of, body=body, needs_s=BUILD_S)


# Artifacts and the life of a job.


def artifacts() -> Call[list[UploadedFile]]:
    """Uploaded job files."""
    return Call("GET", "/jars", lambda body: list(map(UploadedFile.of, body["files"])))


def upload(filename: str, content: bytes) -> Call[str]:
    """Upload a job file; its id."""

    def read(body: Mapping[str, Any]) -> str:
        return str(body["filename"]).rpartition("/")[2]

    return Call("POST", "/jars/upload", read, file=(filename, content))


def delete_artifact(artifact_id: str) -> Call[None]:
    """Forget an uploaded job file."""
    return Call("DELETE", f"/jars/{quote(artifact_id)}", _nothing)


def plan(program: Program) -> Call[JobPlan]:
    """The graph that a program would run as."""
    path = f"/jars/{quote(program.artifact_id)}/plan"
    return Call(
        "POST",
        path,
        lambda body: JobPlan.of(body["plan"]),
        body=_program(program),
        needs_s=BUILD_S,
    )


def run(request: RunRequest) -> Call[str]:
    """Start a job; its id."""
    optional = {"jobId": request.job_id, "savepointPath": request.savepoint_path}
    body = _program(request.program) | _allowance(request.allow_non_restored)
    body |= {name: value for name, value in optional.items() if value is not None}
    body["claimMode"] = request.claim.value
    body |= _acceptance(request.accept_missing_input)
    path = f"/jars/{quote(request.program.artifact_id)}/run"
    return Call("POST", path, lambda answer: str(answer["jobid"]), body=body, needs_s=BUILD_S)


def cancel(job_id: str) -> Call[None]:
    """Begin to cancel a job."""
    return Call("PATCH", _job(job_id), _nothing, {"mode": "cancel"})


def _job(job_id: str, rest: str = "") -> str:
    return f"/jobs/{quote(job_id, safe='')}" + (f"/{rest}" if rest else "")


def _vertex(job_id: str, vertex_id: str, rest: str = "") -> str:
    return _job(job_id, f"vertices/{quote(vertex_id, safe='')}" + (f"/{rest}" if rest else ""))


def _program(program: Program) -> dict[str, object]:
    body: dict[str, object] = {
        "programArgsList": list(program.arguments),
        "flinkConfiguration": dict(program.settings),
    }
    optional = {"parallelism": program.parallelism, "entryClass": program.entry}
    return body | {name: value for name, value in optional.items() if value is not None}


def _allowance(allowed: bool | frozenset[str]) -> dict[str, object]:
    if isinstance(allowed, bool):
        return {"allowNonRestoredState": allowed}
    # A Flink cluster knows nothing of single operators: it ignores the field, and refuses.
    return {"allowNonRestoredOperators": sorted(allowed)}


def _acceptance(accepted: frozenset[str]) -> dict[str, object]:
    """Only where there is any: Flink refuses what it does not know."""
    return {"acceptMissingInput": sorted(accepted)} if accepted else {}


def _nothing(_body: object) -> None:
    return None


def _watermarks(body: Sequence[Mapping[str, str]]) -> dict[int, int]:
    return {int(metric["id"].partition(".")[0]): int(metric["value"]) for metric in body}


def _backpressure(body: Mapping[str, Any]) -> list[Backpressure]:
    return [
        Backpressure(
            subtask=part["subtask"],
            level=part["backpressure-level"],
            backpressured=part["ratio"],
            idle=part["idleRatio"],
            busy=part["busyRatio"],
        )
        for part in body.get("subtasks", ())
    ]
