"""Routes about jobs: lists, one job, its plan, failures, result, metrics, and its end."""

from __future__ import annotations

from enum import StrEnum

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.clock import now_ms
from engine.rest.errors import BadRequest, NotFound
from engine.rest.model.jobs import JobDetails
from engine.rest.parsing import choice, hex_id, query_list, query_number, service_of
from engine.rest.render import failures, jobs, metrics
from engine.rest.render.plan import flink_plan
from engine.rest.routes.answers import aggregated


class Termination(StrEnum):
    """What `mode` may be; Flink keeps STOP for clients of long ago."""

    CANCEL = "CANCEL"
    STOP = "STOP"


async def ids(request: Request) -> JSONResponse:
    """Ids and states of all jobs."""
    return JSONResponse(jobs.ids(await service_of(request).jobs()))


async def overview(request: Request) -> JSONResponse:
    """All jobs with the counts of their tasks."""
    return JSONResponse(jobs.overview(await service_of(request).jobs(), now_ms()))


async def all_metrics(request: Request) -> JSONResponse:
    """Metrics aggregated over jobs: all, or those in `jobs`."""
    wanted = query_list(request, "jobs")
    known = await service_of(request).jobs()
    chosen = [job.metrics for job in known if not wanted or job.id in wanted]
    return JSONResponse(aggregated(request, chosen))


async def details(request: Request) -> JSONResponse:
    """One job."""
    return JSONResponse(jobs.details(await _named(request), now_ms()))


async def status(request: Request) -> JSONResponse:
    """The state of one job."""
    return JSONResponse({"status": (await _named(request)).status})


async def plan(request: Request) -> JSONResponse:
    """The graph of one job."""
    job = await _named(request)
    return JSONResponse({"plan": flink_plan(job.id, job.plan)})


async def config(request: Request) -> JSONResponse:
    """The settings of one job."""
    return JSONResponse(jobs.config(await _named(request)))


async def exceptions(request: Request) -> JSONResponse:
    """The failures of one job."""
    at_most = query_number(request, "maxExceptions")
    history = await service_of(request).failures(hex_id(request, "jobid"))
    return JSONResponse(failures.exceptions(history, at_most))


async def execution_result(request: Request) -> JSONResponse:
    """How one job ended, if it has."""
    return JSONResponse(failures.execution_result(await _named(request)))


async def job_metrics(request: Request) -> JSONResponse:
    """The metrics of one job; none for an unknown one, as in Flink."""
    try:
        known = metrics.job_metrics(await _named(request))
    except NotFound:
        known = {}
    return JSONResponse(metrics.collection(known, query_list(request, "get")))


async def terminate(request: Request) -> JSONResponse:
    """Cancel one job."""
    mode = choice(Termination, request.query_params.get("mode", "cancel"), "mode")
    if mode is Termination.STOP:
        msg = "mode stop is not supported: it would lose state; POST to /jobs/<id>/stop instead"
        raise BadRequest(msg)
    await service_of(request).cancel(hex_id(request, "jobid"))
    return JSONResponse({}, status_code=202)


async def _named(request: Request) -> JobDetails:
    return await service_of(request).job(hex_id(request, "jobid"))


ROUTES = (
    Route("/jobs", ids),
    Route("/jobs/overview", overview),
    Route("/jobs/metrics", all_metrics),
    Route("/jobs/{jobid}", details, methods=["GET"]),
    Route("/jobs/{jobid}", terminate, methods=["PATCH"]),
    Route("/jobs/{jobid}/status", status),
    Route("/jobs/{jobid}/plan", plan),
    Route("/jobs/{jobid}/config", config),
    Route("/jobs/{jobid}/exceptions", exceptions),
    Route("/jobs/{jobid}/execution-result", execution_result),
    Route("/jobs/{jobid}/metrics", job_metrics),
)
