"""What our engine tells of running jobs, and lets people change, over HTTP."""

from __future__ import annotations

import httpx
import pytest

from engine.rest.app import create_app
from engine.rest.client import EngineClient
from engine.rest.model.requests import Program, RescaleRequest, RunRequest
from engine.testing.fake_service import FakeService
from engine.testing.fake_values import SOURCE_ID, WINDOW_ID
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


def test_a_read_limit_is_set_for_a_source_and_taken_away(
    engine: EngineClient, running: str
) -> None:
    assert [one.rows_per_second for one in engine.limit_reading(running, 0.5, "flights")] == [0.5]
    assert [one.rows_per_second for one in engine.limit_reading(running, 100)] == [100]
    assert [one.rows_per_second for one in engine.limit_reading(running, None)] == [None]
    assert [one.uid for one in engine.read_limits(running)] == ["flights"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "field rowsPerSecond is missing"),
        ({"rowsPerSecond": "fast"}, "field rowsPerSecond must be a number: got 'fast'"),
        ({"rowsPerSecond": True}, "field rowsPerSecond must be a number: got True"),
        ({"rowsPerSecond": 1, "source": "x"}, "source 'x' is not in the job: it has flights"),
    ],
)
async def test_a_read_limit_that_is_none_is_refused(
    body: dict[str, object], sentence: str, http: httpx.AsyncClient, job: str
) -> None:
    answer = await http.patch(f"/headwater/jobs/{job}/read-limits", json=body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0].startswith(sentence)


def test_a_job_is_rescaled_by_one_call(engine: EngineClient, running: str) -> None:
    trigger = engine.rescale(running, RescaleRequest(3))
    assert not engine.rescale_status(running, trigger).done
    assert engine.rescale_status(running, trigger).done
    assert [vertex.parallelism for vertex in engine.job(running).vertices] == [3, 3]
    engine.rescale(running, RescaleRequest(vertices={SOURCE_ID: 1}))
    assert [vertex.parallelism for vertex in engine.job(running).vertices] == [1, 3]


async def test_flinks_ways_to_rescale_are_served(http: httpx.AsyncClient, job: str) -> None:
    path = f"/v1/jobs/{job}/resource-requirements"
    bounds = (await http.get(path)).json()
    assert {vertex: of["parallelism"]["upperBound"] for vertex, of in bounds.items()} == {
        SOURCE_ID: 2,
        WINDOW_ID: 2,
    }
    for of in bounds.values():
        of["parallelism"]["upperBound"] = 4
    answer = await http.put(path, json=bounds)
    assert (answer.status_code, answer.json()) == (200, {})
    assert (await http.get(path)).json() == bounds
    answer = await http.patch(f"/jobs/{job}/rescaling?parallelism=1")
    assert answer.status_code == 200
    trigger = answer.json()["request-id"]
    states = [
        (await http.get(f"/jobs/{job}/rescaling/{trigger}")).json()["status"]["id"]
        for _ in range(2)
    ]
    assert states == ["IN_PROGRESS", "COMPLETED"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("PATCH", "/jobs/{job}/rescaling", {}, 400, "query parameter parallelism is missing"),
        ("PUT", "/jobs/{job}/resource-requirements", {}, 400, "requirements of every vertex"),
        (
            "PUT",
            "/jobs/{job}/resource-requirements",
            {SOURCE_ID: {"parallelism": {"lowerBound": 3, "upperBound": 2}}},
            400,
            f"vertex {SOURCE_ID} needs parallelism.upperBound, at least its lowerBound 3: got 2",
        ),
        ("POST", "/headwater/jobs/{job}/rescaling", {}, 400, "either parallelism or vertices"),
        ("POST", "/headwater/jobs/{job}/rescaling", {"parallelism": 9}, 409, "rescale of job"),
        ("POST", "/headwater/jobs/{job}/rescaling", {"parallelism": 129}, 400, "parallelism of "),
        ("POST", "/headwater/jobs/{job}/rescaling", {"vertices": {"ab": 1}}, 404, "job vertex ab"),
        ("GET", "/jobs/{job}/rescaling/" + "0" * 32, None, 404, "there is no rescale operation"),
    ],
)
async def test_a_rescale_that_cannot_be_is_refused(
    method: str,
    path: str,
    body: object,
    status: int,
    sentence: str,
    http: httpx.AsyncClient,
    job: str,
) -> None:
    answer = await http.request(method, path.format(job=job), json=body)
    assert answer.status_code == status
    assert answer.json()["errors"][0].startswith(sentence)


@pytest.mark.parametrize("query", ["window=0", "step=0", "window=3601", "window=10&step=3"])
async def test_a_window_that_is_none_is_refused(
    query: str, http: httpx.AsyncClient, job: str
) -> None:
    answer = await http.get(f"/headwater/jobs/{job}/statistics?{query}")
    assert answer.status_code == 400
    assert answer.json()["errors"][0].startswith("window must be at most 3600 s")
