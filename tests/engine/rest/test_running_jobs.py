"""What our engine tells of running jobs, and lets people change, over HTTP."""

from __future__ import annotations

import httpx
import pytest

from engine.rest.app import create_app
from engine.rest.client import EngineClient
from engine.rest.model.requests import Program, RunRequest
from engine.testing.fake_service import FakeService
from engine.testing.in_memory import InMemory

URL = "http://127.0.0.1:8081"


@pytest.fixture
def engine(service: FakeService) -> EngineClient:
    return EngineClient(URL, transport=InMemory(create_app(service)))


@pytest.fixture
def running(engine: EngineClient) -> str:
    return engine.run(RunRequest(Program(engine.upload("flights.py", b"pass\n"))))


def test_statistics_are_one_list_per_figure(engine: EngineClient, running: str) -> None:
    found = engine.statistics(running, window_s=60, step_s=20)
    assert [time - found.from_ms for time in found.time_ms] == [0, 20_000, 40_000]
    (source,) = found.sources
    assert source.series["rows"] == [18_000, 18_000, 18_000]
    assert source.summary["total_delay_max_ms"] == 40.5
    assert set(found.job.series) == set(found.job.summary)


@pytest.mark.parametrize("query", ["window=0", "step=0", "window=3601", "window=10&step=3"])
async def test_a_window_that_is_none_is_refused(
    query: str, http: httpx.AsyncClient, job: str
) -> None:
    answer = await http.get(f"/headwater/jobs/{job}/statistics?{query}")
    assert answer.status_code == 400
    assert answer.json()["errors"][0].startswith("window must be at most 3600 s")
