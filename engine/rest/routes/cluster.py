"""Routes about the engine itself and its task managers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.errors import task_manager_not_found
from engine.rest.model.cluster import TaskManagerInfo
from engine.rest.parsing import query_list, service_of
from engine.rest.render import cluster as render
from engine.rest.render import metrics
from engine.rest.routes.answers import aggregated


async def overview(request: Request) -> JSONResponse:
    """Totals of the engine."""
    service = service_of(request)
    return JSONResponse(render.overview(await service.cluster(), await service.jobs()))


async def config(request: Request) -> JSONResponse:
    """What this server is and offers."""
    return JSONResponse(render.config(await service_of(request).cluster()))


async def job_manager_metrics(request: Request) -> JSONResponse:
    """Metrics of the job manager."""
    service = service_of(request)
    known = render.job_manager_metrics(await service.cluster(), await service.jobs())
    return JSONResponse(metrics.collection(known, query_list(request, "get")))


async def task_managers(request: Request) -> JSONResponse:
    """Every registered task manager."""
    return JSONResponse(render.task_managers(await service_of(request).cluster()))


async def task_managers_metrics(request: Request) -> JSONResponse:
    """Metrics aggregated over task managers: all, or those in `taskmanagers`."""
    wanted = query_list(request, "taskmanagers")
    cluster = await service_of(request).cluster()
    chosen = [one for one in cluster.task_managers if not wanted or one.id in wanted]
    return JSONResponse(aggregated(request, [one.metrics for one in chosen]))


async def task_manager(request: Request) -> JSONResponse:
    """One task manager."""
    return JSONResponse(render.task_manager(await _named(request)))


async def task_manager_metrics(request: Request) -> JSONResponse:
    """Metrics of one task manager."""
    known = (await _named(request)).metrics
    return JSONResponse(metrics.collection(known, query_list(request, "get")))


async def _named(request: Request) -> TaskManagerInfo:
    wanted = str(request.path_params["taskmanagerid"])
    cluster = await service_of(request).cluster()
    for manager in cluster.task_managers:
        if manager.id == wanted:
            return manager
    raise task_manager_not_found(wanted)


ROUTES = (
    Route("/overview", overview),
    Route("/config", config),
    Route("/jobmanager/metrics", job_manager_metrics),
    Route("/taskmanagers", task_managers),
    Route("/taskmanagers/metrics", task_managers_metrics),
    Route("/taskmanagers/{taskmanagerid}", task_manager),
    Route("/taskmanagers/{taskmanagerid}/metrics", task_manager_metrics),
)
