"""An engine in memory behind its HTTP interface, with one running job."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from engine.rest.app import create_app
from engine.testing.fake_service import FakeService

URL = "http://127.0.0.1:8081"
JOB = "f9e2dec7421e24e9c49cd42e441e7bd6"
UNKNOWN = "0" * 32


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest_asyncio.fixture
async def http(service: FakeService) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield client


@pytest_asyncio.fixture
async def artifact(http: httpx.AsyncClient) -> str:
    answer = await http.post("/jars/upload", files={"jarfile": ("flights.py", b"pass\n")})
    return str(answer.json()["filename"])


@pytest_asyncio.fixture
async def job(http: httpx.AsyncClient, artifact: str) -> str:
    answer = await http.post(f"/jars/{artifact}/run", json={"jobId": JOB, "parallelism": 2})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["jobid"])
