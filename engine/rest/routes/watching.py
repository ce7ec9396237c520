"""The route of those who watch many jobs at once: what a dozen requests per job would tell, in one.

    GET /headwater/watch?jobs=a,b&get=numRecordsInPerSecond,busyTimeMsPerSecond

Cost     rendering is off the event loop: a job manager with hundreds of jobs goes on meanwhile.
Missing  a job that is not known (any more) is left out.
"""

from __future__ import annotations

import asyncio
import json

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.clock import now_ms
from engine.rest.errors import NotFound
from engine.rest.parsing import query_list, query_number, service_of
from engine.rest.render.watching import Watched, recent, watched
from engine.rest.service import EngineService


async def watch(request: Request) -> Response:
    """Jobs with their checkpoints, failures, progress, and metrics aggregated by vertex.

    `get` names metrics of vertices, and of operators by what follows their name; of checkpoints
    those that were pending or ended at `since` (epoch ms) or later are listed.
    """
    service, names = service_of(request), query_list(request, "get")
    at_most, since = query_number(request, "maxExceptions"), query_number(request, "since") or 0
    looks = [await _look(service, job_id, since) for job_id in query_list(request, "jobs")]
    seen = [look for look in looks if look is not None]
    text = await asyncio.to_thread(
        lambda: json.dumps(watched(seen, names, at_most, now_ms()), separators=(",", ":"))
    )
    return Response(text, media_type="application/json")


async def _look(service: EngineService, job_id: str, since_ms: int) -> Watched | None:
    try:
        return Watched(
            await service.job(job_id),
            recent(await service.checkpoints(job_id), since_ms),
            await service.failures(job_id),
            await service.progress(job_id),
        )
    except NotFound:
        return None


ROUTES = (Route("/headwater/watch", watch),)
