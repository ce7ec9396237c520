"""A blocking client of an application that awaits, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from engine.rest.client import EngineClient

URL = "http://127.0.0.1:8081"


class InProcess(httpx.BaseTransport):
    """Calls the application; remembers what was asked for."""

    def __init__(self, app: Any) -> None:
        self._app = httpx.ASGITransport(app)
        self.asked: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path)
        status, body = asyncio.run(self._ask(httpx.Request(request.method, request.url)))
        return httpx.Response(status, content=body, headers={"Content-Type": "application/json"})

    async def _ask(self, request: httpx.Request) -> tuple[int, bytes]:
        response = await self._app.handle_async_request(request)
        return response.status_code, await response.aread()


def client_of(transport: InProcess) -> EngineClient:
    """A client of it."""
    return EngineClient(URL, transport=transport)
