"""Our additions to Flink's interface, under /headwater: what its routes cannot say of a job."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.parsing import hex_id, service_of
from engine.rest.render import snapshots
from engine.rest.render.plan import engine_plan

FEATURES = (
    "preflight",
    "savepoint-summary",
    "savepoint-reading",
    "progress",
    "engine-plan",
    "client-trigger-ids",
    "statistics",
    "read-limits",
    "rescale",
    "live-state",
    "openapi",
    "local-task-managers",
    "watch",
)


async def capabilities(request: Request) -> JSONResponse:
    """What this engine is, and which additions it has."""
    cluster = await service_of(request).cluster()
    body = {"engine": "headwater", "version": cluster.version, "features": list(FEATURES)}
    return JSONResponse(body)


async def openapi(request: Request) -> JSONResponse:
    """All routes and their JSON, as an OpenAPI document."""
    return JSONResponse(await run_in_threadpool(request.app.state.openapi))


async def progress(request: Request) -> JSONResponse:
    """How far a job is in event time."""
    known = await service_of(request).progress(hex_id(request, "jobid"))
    return JSONResponse(snapshots.progress(known))


async def plan(request: Request) -> JSONResponse:
    """The plan of a job in the engine's own form: operators, states, sinks."""
    job = await service_of(request).job(hex_id(request, "jobid"))
    return JSONResponse({"plan": engine_plan(job.plan)})


ROUTES = (
    Route("/headwater/capabilities", capabilities),
    Route("/headwater/openapi.json", openapi),
    Route("/headwater/jobs/{jobid}/progress", progress),
    Route("/headwater/jobs/{jobid}/plan", plan),
)
