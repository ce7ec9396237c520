"""Routes that change the parallelism of a running job: Flink's two, and ours.

    PUT   /jobs/:id/resource-requirements     of every vertex: its upper bound; Flink 2
    PATCH /jobs/:id/rescaling?parallelism=2   of the whole job, with a trigger id; Flink 1
    POST  /headwater/jobs/:id/rescaling       of the job or of vertices, with a trigger id

Unlike in Flink, what cannot be done, as for want of slots, is refused at once.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.rest.errors import BadRequest
from engine.rest.model.jobs import JobDetails
from engine.rest.model.requests import RescaleRequest
from engine.rest.parsing import Body, body_of, hex_id, query_number, service_of
from engine.rest.render import failures, jobs
from engine.rest.routes.answers import triggered


async def requirements(request: Request) -> JSONResponse:
    """The parallelism of every vertex, as bounds."""
    job = await service_of(request).job(hex_id(request, "jobid"))
    return JSONResponse(jobs.resource_requirements(job))


async def require(request: Request) -> JSONResponse:
    """Rescale every vertex to its upper bound."""
    service, job_id = service_of(request), hex_id(request, "jobid")
    body = await body_of(request)
    wanted = {vertex: _upper_bound(vertex, body) for vertex in body.fields}
    _check_all_named(wanted, await service.job(job_id))
    await service.rescale(job_id, RescaleRequest(vertices=wanted))
    return JSONResponse({})


async def rescale_all(request: Request) -> JSONResponse:
    """Rescale the whole job."""
    wanted = Body({"parallelism": query_number(request, "parallelism")}).count("parallelism")
    if wanted is None:
        msg = "query parameter parallelism is missing; pass e.g. parallelism=2"
        raise BadRequest(msg)
    asked = RescaleRequest(parallelism=wanted)
    return triggered(await service_of(request).rescale(hex_id(request, "jobid"), asked), 200)


async def rescale(request: Request) -> JSONResponse:
    """Rescale the whole job, or some vertices."""
    body = await body_of(request)
    vertices = body.counts("vertices")
    parallelism = body.count("parallelism")
    if (parallelism is None) == (not vertices):
        msg = 'either parallelism or vertices is needed; send e.g. {"parallelism": 2}'
        raise BadRequest(msg)
    asked = RescaleRequest(parallelism, vertices, body.hex_id("triggerId"))
    return triggered(await service_of(request).rescale(hex_id(request, "jobid"), asked))


async def status(request: Request) -> JSONResponse:
    """Where a rescale stands."""
    job_id, trigger_id = hex_id(request, "jobid"), hex_id(request, "triggerid")
    known = await service_of(request).rescale_status(job_id, trigger_id)
    return JSONResponse(failures.savepoint_operation(known))


def _upper_bound(vertex: str, body: Body) -> int:
    bounds = body.object(vertex).object("parallelism")
    lower, upper = bounds.count("lowerBound") or 1, bounds.count("upperBound")
    if upper is None or upper < lower:
        msg = (
            f"vertex {vertex[:32]} needs parallelism.upperBound, at least its lowerBound {lower}: "
            f"got {upper}"
        )
        raise BadRequest(msg)
    return upper


def _check_all_named(wanted: Mapping[str, int], job: JobDetails) -> None:
    """As in Flink, where leaving one out is more likely a mistake."""
    missing = [vertex.id for vertex in job.vertices if vertex.id not in wanted]
    if missing:
        msg = f"requirements of every vertex are needed: {missing[0]} is missing; name all of them"
        raise BadRequest(msg)


_JOB = "/jobs/{jobid}"

ROUTES = (
    Route(f"{_JOB}/resource-requirements", requirements, methods=["GET"]),
    Route(f"{_JOB}/resource-requirements", require, methods=["PUT"]),
    Route(f"{_JOB}/rescaling", rescale_all, methods=["PATCH"]),
    Route(f"{_JOB}/rescaling/{{triggerid}}", status),
    Route(f"/headwater{_JOB}/rescaling", rescale, methods=["POST"]),
    Route(f"/headwater{_JOB}/rescaling/{{triggerid}}", status),
)
