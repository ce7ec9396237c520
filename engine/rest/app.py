"""The HTTP application: every route under `/x` and `/v1/x`, over any service.

    request ─▶ Guard ─▶ routes/ ─▶ EngineService ─▶ render/ ─▶ Flink's JSON

Errors   always {"errors": [sentence]}. As in Flink, an unknown route and a method that a route
         does not have are both 404. Unlike Flink, what a client names wrongly is 400 or 404, never
         500; and a job or a snapshot that cannot be used is refused at once, with its reason,
         rather than accepted and failed later.
"""

from __future__ import annotations

from functools import cache, partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount

from engine.errors import HeadwaterError
from engine.rest.errors import status_of
from engine.rest.guard import MAX_UPLOAD_BYTES, Guard
from engine.rest.openapi import document
from engine.rest.routes import (
    artifacts,
    checkpoints,
    cluster,
    headwater,
    jobs,
    metrics,
    rescaling,
    resources,
    running,
    snapshots,
    vertices,
    watching,
)
from engine.rest.service import EngineService

TOPICS = (
    cluster,
    jobs,
    vertices,
    checkpoints,
    artifacts,
    headwater,
    running,
    rescaling,
    metrics,
    resources,
    snapshots,
    watching,
)


def create_app(
    service: EngineService,
    token: str | None = None,
    max_upload_bytes: int = MAX_UPLOAD_BYTES,
) -> Starlette:
    """Make the application of one engine.

    Without a `token` only requests to a loopback name are answered: set one before listening on
    any other address.
    """
    routes = [route for topic in TOPICS for route in topic.ROUTES]
    app = Starlette(
        routes=[*routes, Mount("/v1", routes=routes)],
        middleware=[Middleware(Guard, token=token, max_upload_bytes=max_upload_bytes)],
        exception_handlers={
            HeadwaterError: _refused,
            HTTPException: _not_served,
            Exception: _broken,
        },
    )
    app.state.service = service
    app.state.openapi = cache(partial(document, routes))
    app.router.redirect_slashes = False
    return app


def errors(status: int, *sentences: str) -> JSONResponse:
    """An answer in Flink's form of a refusal."""
    return JSONResponse({"errors": list(sentences)}, status_code=status)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    status = status_of(error) if isinstance(error, HeadwaterError) else 500
    return errors(status, str(error))


async def _not_served(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HTTPException) and error.status_code not in (404, 405):
        return errors(error.status_code, error.detail)
    return errors(404, f"not found: {request.method} {request.url.path}")


async def _broken(_request: Request, error: Exception) -> JSONResponse:
    return errors(500, f"internal error: {type(error).__name__}; see the log of the job manager")
