"""The route that Prometheus scrapes."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.rest.parsing import service_of
from engine.rest.render import prometheus
from engine.rest.render.samples import samples


async def metrics(request: Request) -> Response:
    """Every metric of the engine and of jobs that have not ended."""
    service = service_of(request)
    cluster, jobs = await service.cluster(), await service.jobs()
    text = await asyncio.to_thread(lambda: prometheus.text(samples(cluster, jobs)))
    return Response(text, media_type=prometheus.CONTENT_TYPE)


ROUTES = (Route("/metrics", metrics),)
