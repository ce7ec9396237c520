"""Routes about one vertex of a job."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from engine.clock import now_ms
from engine.rest.errors import BadRequest, NotFound, vertex_not_found
from engine.rest.model.jobs import VertexDetails
from engine.rest.parsing import hex_id, query_list, service_of
from engine.rest.render import metrics, vertices
from engine.rest.routes.answers import aggregated


async def details(request: Request) -> JSONResponse:
    """The vertex with its subtasks."""
    return JSONResponse(vertices.details(await _named(request), now_ms()))


async def task_managers(request: Request) -> JSONResponse:
    """The vertex by task managers."""
    return JSONResponse(vertices.task_managers(await _named(request), now_ms()))


async def watermarks(request: Request) -> JSONResponse:
    """The input watermarks of its subtasks."""
    return JSONResponse(metrics.watermarks(await _named(request)))


async def backpressure(request: Request) -> JSONResponse:
    """How busy its subtasks are; an unknown vertex has no figures, as in Flink."""
    try:
        body = vertices.backpressure(await _named(request), now_ms())
    except NotFound:
        body = {"status": "deprecated"}
    return JSONResponse(body)


async def vertex_metrics(request: Request) -> JSONResponse:
    """Its metrics, each prefixed by the subtask's number."""
    known = metrics.vertex_metrics(await _named(request))
    return JSONResponse(metrics.collection(known, query_list(request, "get")))


async def subtasks_metrics(request: Request) -> JSONResponse:
    """Its metrics aggregated over subtasks: all, or those in `subtasks` such as `0,2-4`."""
    vertex = await _named(request)
    wanted = _numbers(query_list(request, "subtasks"), vertex.parallelism)
    chosen = [subtask for subtask in vertex.subtasks if subtask.index in wanted]
    sources = [metrics.subtask_metrics(subtask) for subtask in chosen]
    return JSONResponse(aggregated(request, sources, by_default=tuple(metrics.AGGREGATIONS)))


async def subtask_metrics(request: Request) -> JSONResponse:
    """The metrics of one subtask."""
    vertex = await _named(request)
    wanted = str(request.path_params["subtaskindex"])
    for subtask in vertex.subtasks:
        if str(subtask.index) == wanted:
            known = metrics.subtask_metrics(subtask)
            return JSONResponse(metrics.collection(known, query_list(request, "get")))
    msg = f"vertex {vertex.name} has no subtask {wanted[:20]}: it has {vertex.parallelism}"
    raise NotFound(msg)


def _numbers(ranges: Sequence[str], parallelism: int) -> set[int]:
    if not ranges:
        return set(range(parallelism))
    chosen: set[int] = set()
    for part in ranges:
        low, _, high = part.partition("-")
        if not (low.isdigit() and (high or low).isdigit()):
            msg = f"subtasks must be numbers and ranges such as 0,2-4: got {part[:80]!r}"
            raise BadRequest(msg)
        # A range past the end costs nothing: only existing subtasks are looked at.
        chosen.update(range(int(low), min(int(high or low) + 1, parallelism)))
    return chosen


async def _named(request: Request) -> VertexDetails:
    wanted = hex_id(request, "vertexid")
    job = await service_of(request).job(hex_id(request, "jobid"))
    for vertex in job.vertices:
        if vertex.id == wanted:
            return vertex
    raise vertex_not_found(wanted)


_VERTEX = "/jobs/{jobid}/vertices/{vertexid}"

ROUTES = (
    Route(_VERTEX, details),
    Route(f"{_VERTEX}/taskmanagers", task_managers),
    Route(f"{_VERTEX}/watermarks", watermarks),
    Route(f"{_VERTEX}/backpressure", backpressure),
    Route(f"{_VERTEX}/metrics", vertex_metrics),
    Route(f"{_VERTEX}/subtasks/metrics", subtasks_metrics),
    Route(f"{_VERTEX}/subtasks/{{subtaskindex}}/metrics", subtask_metrics),
)
