"""A transport that carries a blocking client's requests to an app in the same process.

client = EngineClient(URL, transport=InMemory(create_app(FakeService())))
"""

from __future__ import annotations

import asyncio

import httpx
from starlette.types import ASGIApp


class InMemory(httpx.BaseTransport):
    """Each request runs the app to its answer on an event loop of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and wait for the whole answer."""
        return asyncio.run(self._handle(request, request.read()))

    async def _handle(self, request: httpx.Request, content: bytes) -> httpx.Response:
        copy = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        answer = await self._inner.handle_async_request(copy)
        return httpx.Response(answer.status_code, content=await answer.aread())
