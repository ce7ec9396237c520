"""A series server that goes away: the job holds its checkpoint, metrics wait, no point is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.testing.cluster import LocalCluster, wait_until
from fixtures.point_server import PointServer
from free_ports import free_ports
from integration import recording
from integration.conftest import Bench

pytestmark = pytest.mark.integration

JOB_FILE = Path(__file__).parent / "points_job.py"
PACE = 3_600 * 6
REPORTER = ("reporterPointsDropped", "reporterPointsWaiting", "reporterSilentTime")


@pytest.fixture
def server() -> PointServer:
    return PointServer(*free_ports(1))  # it comes back there: nobody may get it meanwhile


@pytest.fixture
def bench(tmp_path: Path, data: Path, server: PointServer) -> Iterator[Bench]:
    """A cluster whose job and metrics write to that server."""
    environment = {
        "HEADWATER_POINTS_URL": server.url,
        "HEADWATER_METRICS_URL": server.url,
        "HEADWATER_METRICS_INTERVAL": "1s",
    }
    with (
        LocalCluster(tmp_path / "engine", task_managers=1, environment=environment) as cluster,
        EngineClient(cluster.url) as client,
    ):
        yield Bench(cluster, client, data, tmp_path / "output")


def test_a_job_waits_for_the_server_and_its_points_are_those_of_its_files(
    bench: Bench, server: PointServer
) -> None:
    arguments = [str(bench.data), str(bench.output), str(PACE)]
    with server.serving():
        job = bench.submit_file(JOB_FILE, arguments, parallelism=1)
        bench.await_checkpoints(job, 2)
        wait_until(lambda: len(kept(server, "headwater_job,")) > 1, "metrics have come")

    wait_until(lambda: bench.client.job_failures(job), "the sink has given up once")
    silent = reporter(bench)
    assert silent["reporterSilentTime"] > 1_000
    assert silent["reporterPointsWaiting"] > 0
    assert "it does not answer: Connection refused" in bench.client.job_failures(job)[0].sentence
    held = bench.client.checkpoints(job).counts.completed

    with PointServer(server.server_port, server.points).serving():
        assert bench.await_end(job) is JobStatus.FINISHED
        wait_until(lambda: not reporter(bench)["reporterSilentTime"], "metrics are written again")
    assert bench.client.checkpoints(job).counts.completed > held
    assert reporter(bench)["reporterPointsDropped"] == 0

    rows = pl.concat([pl.read_parquet(file) for file in recording.visible(bench.output)])
    ends = rows["window_end"].dt.epoch("us").cast(pl.String)
    wanted = {
        (f"hourly,key={key}", end): f"n={n}i"
        for key, end, n in zip(rows["key"], ends, rows["n"], strict=True)
    }
    assert kept(server, "hourly,") == wanted


def kept(server: PointServer, series: str) -> dict[tuple[str, str], str]:
    return {at: fields for at, fields in list(server.points.items()) if at[0].startswith(series)}


def reporter(bench: Bench) -> dict[str, float]:
    told = bench.client.job_manager_metrics(REPORTER)
    return {name: float(told[name]) for name in REPORTER}
