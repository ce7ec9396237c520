"""A real engine with a running job answers in Flink's shapes too: its values fit what REST asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from engine.rest.client import EngineClient
from engine.rest.model.requests import Program, RunRequest
from engine.rest.model.states import StateQuery
from engine.testing.cluster import PATIENCE_S, LocalCluster, wait_until
from flink_captures import REQUESTS, capture, differences
from flink_routes import DIFFERENT, GETS
from openapi_answers import answered, told

pytestmark = pytest.mark.integration

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights.py"

ONLY_HERE = {
    "22_job_config": {"extra $.execution-config.user-config.parallelism.default"},
}
"""Settings of the job: the recorded one had none."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("engine")
    with LocalCluster(folder / "home", task_managers=1) as cluster:
        yield cluster.url


@pytest.fixture(scope="module")
def names(url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A running job that has completed a checkpoint and reported its figures."""
    output = tmp_path_factory.mktemp("output")
    with EngineClient(url) as engine:
        artifact = engine.upload(EXAMPLE.name, EXAMPLE.read_bytes())
        arguments = ("--speed", "86400", "--output", str(output), "--no-points")
        job = engine.run(RunRequest(Program(artifact, arguments, parallelism=2)))
        wait_until(lambda: engine.job(job).all_running, "every subtask runs")
        source, *_, window = (vertex.id for vertex in engine.job(job).vertices)
        wait_until(lambda: engine.backpressure(job, window), "figures are reported")
        wait_until(lambda: len(engine.watermarks(job, window)) == 2, "event time is known")
        latest = wait_until(lambda: engine.checkpoints(job).latest_completed, "a checkpoint")
        manager = engine.task_managers()[0].id
    return {
        "job": job,
        "source": source,
        "window": window,
        "artifact": artifact,
        "localhost:tm-1-a1b2c3": manager,
        "details/1": f"details/{latest.id}",
    }


@pytest.mark.parametrize("name", GETS)
def test_a_real_answer_has_flinks_shape(name: str, url: str, names: dict[str, str]) -> None:
    path = GETS[name].format(**names)
    for fixed in ("localhost:tm-1-a1b2c3", "details/1"):
        path = path.replace(fixed, names[fixed])
    answer = httpx.get(url + path, trust_env=False, timeout=PATIENCE_S)
    assert answer.status_code == REQUESTS[name][2], answer.text
    expected = set(DIFFERENT.get(name, ())) | ONLY_HERE.get(name, set())
    assert differences(answer.json(), capture(name)) == expected
    assert answered(told(path, "GET"), answer) == []


def test_live_state_of_a_running_job_is_told(url: str, names: dict[str, str]) -> None:
    query = StateQuery("daily", "slices", {"carrier": "AA", "origin": "JFK"})
    with EngineClient(url) as engine:
        found = wait_until(
            lambda: (value := engine.live_state(names["job"], query)).is_found and value, "a row"
        )
    assert found.kind == "runs"
    columns = list(found.rows.columns)
    assert columns[:4] == ["key_group", "carrier", "origin", "slice_end"]
    assert all(row[1:3] == ["AA", "JFK"] for row in found.rows.rows)
