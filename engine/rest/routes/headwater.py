"""Our additions to Flink's interface, under /headwater: what its routes cannot say."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.errors import BadRequest
from engine.rest.model.requests import PreflightRequest
from engine.rest.parsing import Body, body_of, hex_id, service_of
from engine.rest.render import snapshots
from engine.rest.render.plan import engine_plan
from engine.rest.routes.artifacts import allowance_of, program_of

FEATURES = (
    "preflight",
    "savepoint-summary",
    "progress",
    "engine-plan",
    "client-trigger-ids",
    "statistics",
    "local-task-managers",
)


async def capabilities(request: Request) -> JSONResponse:
    """What this engine is, and which additions it has."""
    cluster = await service_of(request).cluster()
    body = {"engine": "headwater", "version": cluster.version, "features": list(FEATURES)}
    return JSONResponse(body)


async def preflight(request: Request) -> JSONResponse:
    """What a start from a snapshot would restore; starts nothing."""
    body = await body_of(request)
    path = _needed(body, "savepointPath")
    wanted = PreflightRequest(
        program=program_of(request, _needed(body, "artifact"), body),
        savepoint_path=path,
        allow_non_restored=allowance_of(body),
    )
    return JSONResponse(snapshots.preflight(path, await service_of(request).preflight(wanted)))


async def savepoint(request: Request) -> JSONResponse:
    """What a snapshot holds, from its manifest."""
    path = request.query_params.get("path")
    if not path:
        msg = "query parameter path is missing; name the folder of a snapshot"
        raise BadRequest(msg)
    return JSONResponse(snapshots.savepoint(path, await service_of(request).savepoint(path)))


async def progress(request: Request) -> JSONResponse:
    """How far a job is in event time."""
    known = await service_of(request).progress(hex_id(request, "jobid"))
    return JSONResponse(snapshots.progress(known))


async def plan(request: Request) -> JSONResponse:
    """The plan of a job in the engine's own form: operators, states, sinks."""
    job = await service_of(request).job(hex_id(request, "jobid"))
    return JSONResponse({"plan": engine_plan(job.plan)})


def _needed(body: Body, name: str) -> str:
    value = body.text(name)
    if not value:
        msg = f"field {name} is missing from the request body"
        raise BadRequest(msg)
    return value


ROUTES = (
    Route("/headwater/capabilities", capabilities),
    Route("/headwater/preflight", preflight, methods=["POST"]),
    Route("/headwater/savepoints", savepoint),
    Route("/headwater/jobs/{jobid}/progress", progress),
    Route("/headwater/jobs/{jobid}/plan", plan),
)
