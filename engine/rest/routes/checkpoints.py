"""Routes about checkpoints and savepoints of a job: statistics, commands, polls."""

from __future__ import annotations

from enum import StrEnum

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.checkpoint.coordination.stats import CheckpointStats
from engine.rest.errors import BadRequest, checkpoint_not_found, vertex_not_found
from engine.rest.model.requests import SavepointRequest, StopRequest
from engine.rest.parsing import Body, body_of, choice, hex_id, number, service_of
from engine.rest.render import checkpoints, failures
from engine.rest.routes.answers import triggered


class SavepointFormat(StrEnum):
    """Flink's formats: of any backend, or of the one that writes it fast. Ours is one, and both."""

    CANONICAL = "CANONICAL"
    NATIVE = "NATIVE"


class CheckpointType(StrEnum):
    """What a manual checkpoint should hold."""

    CONFIGURED = "CONFIGURED"
    FULL = "FULL"
    """All state anew: it builds on no earlier checkpoint."""
    INCREMENTAL = "INCREMENTAL"
    """What has changed, if the job's checkpoints are incremental: so the same as CONFIGURED."""


async def history(request: Request) -> JSONResponse:
    """Counts, summary, and the last checkpoints."""
    known = await service_of(request).checkpoints(hex_id(request, "jobid"))
    return JSONResponse(checkpoints.history(known))


async def settings(request: Request) -> JSONResponse:
    """How the job takes checkpoints."""
    chosen = await service_of(request).checkpoint_settings(hex_id(request, "jobid"))
    return JSONResponse(checkpoints.settings(chosen))


async def details(request: Request) -> JSONResponse:
    """One checkpoint with the part of each vertex."""
    return JSONResponse(checkpoints.details(await _named(request)))


async def subtasks(request: Request) -> JSONResponse:
    """One checkpoint: the part of one vertex by subtasks."""
    wanted = hex_id(request, "vertexid")
    stats = await _named(request)
    for vertex in stats.vertices:
        if vertex.vertex_id == wanted:
            return JSONResponse(checkpoints.subtasks(stats, vertex))
    raise vertex_not_found(wanted)


async def trigger_savepoint(request: Request) -> JSONResponse:
    """Begin a savepoint."""
    body = await body_of(request)
    _check_format(body)
    wanted = SavepointRequest(
        target=body.text("target-directory"),
        trigger_id=body.hex_id("triggerId"),
        cancel=body.flag("cancel-job"),
    )
    service = service_of(request)
    return triggered(await service.trigger_savepoint(hex_id(request, "jobid"), wanted))


async def stop(request: Request) -> JSONResponse:
    """Begin to stop with a savepoint."""
    body = await body_of(request)
    _check_format(body)
    wanted = StopRequest(
        target=body.text("targetDirectory"),
        trigger_id=body.hex_id("triggerId"),
        drain=body.flag("drain"),
    )
    return triggered(await service_of(request).stop(hex_id(request, "jobid"), wanted))


async def savepoint_status(request: Request) -> JSONResponse:
    """Where a savepoint or a stop stands."""
    job_id, trigger_id = hex_id(request, "jobid"), hex_id(request, "triggerid")
    status = await service_of(request).savepoint_status(job_id, trigger_id)
    return JSONResponse(failures.savepoint_operation(status))


async def trigger_checkpoint(request: Request) -> JSONResponse:
    """Begin a checkpoint now."""
    body = await body_of(request)
    kind = choice(CheckpointType, body.text("checkpointType") or "CONFIGURED", "checkpointType")
    job_id, trigger_id = hex_id(request, "jobid"), body.hex_id("triggerId")
    full = kind is CheckpointType.FULL
    return triggered(await service_of(request).trigger_checkpoint(job_id, trigger_id, full=full))


async def checkpoint_status(request: Request) -> JSONResponse:
    """Where a manual checkpoint stands."""
    job_id, trigger_id = hex_id(request, "jobid"), hex_id(request, "triggerid")
    status = await service_of(request).checkpoint_status(job_id, trigger_id)
    return JSONResponse(failures.checkpoint_operation(status))


async def dispose(request: Request) -> JSONResponse:
    """Begin to delete a savepoint."""
    path = (await body_of(request)).text("savepoint-path")
    if not path:
        msg = "field savepoint-path is missing; name the savepoint to delete"
        raise BadRequest(msg)
    return triggered(await service_of(request).dispose_savepoint(path), status=200)


async def disposal_status(request: Request) -> JSONResponse:
    """Where the deletion of a savepoint stands."""
    status = await service_of(request).disposal_status(hex_id(request, "triggerid"))
    return JSONResponse(failures.savepoint_operation(status))


def _check_format(body: Body) -> None:
    choice(SavepointFormat, body.text("formatType") or "CANONICAL", "formatType")


async def _named(request: Request) -> CheckpointStats:
    wanted = number(request, "checkpointid")
    known = await service_of(request).checkpoints(hex_id(request, "jobid"))
    latest = (known.latest_completed, known.latest_savepoint, known.latest_failed)
    for stats in (*known.history, *latest):
        if stats is not None and stats.id == wanted:
            return stats
    raise checkpoint_not_found(wanted)


_JOB = "/jobs/{jobid}"
_DETAILS = f"{_JOB}/checkpoints/details/{{checkpointid}}"

ROUTES = (
    Route(f"{_JOB}/checkpoints", history, methods=["GET"]),
    Route(f"{_JOB}/checkpoints", trigger_checkpoint, methods=["POST"]),
    Route(f"{_JOB}/checkpoints/config", settings),
    Route(f"{_JOB}/checkpoints/{{triggerid}}", checkpoint_status),
    Route(_DETAILS, details),
    Route(f"{_DETAILS}/subtasks/{{vertexid}}", subtasks),
    Route(f"{_JOB}/savepoints", trigger_savepoint, methods=["POST"]),
    Route(f"{_JOB}/savepoints/{{triggerid}}", savepoint_status),
    Route(f"{_JOB}/stop", stop, methods=["POST"]),
    Route("/savepoint-disposal", dispose, methods=["POST"]),
    Route("/savepoint-disposal/{triggerid}", disposal_status),
)
