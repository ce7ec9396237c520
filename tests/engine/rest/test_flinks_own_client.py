"""Apache Flink's own command line operates our engine: list, savepoint, stop, cancel, dispose."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import LocalCluster, wait_until
from flink_process import command_line

pytestmark = pytest.mark.flink

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights.py"


@pytest.fixture
def client(tmp_path):
    with (
        LocalCluster(tmp_path / "engine", task_managers=1, slots=2) as cluster,
        EngineClient(cluster.url) as found,
    ):
        yield found


@pytest.fixture
def flink(client, tmp_path):
    folder = tmp_path / "client"
    folder.mkdir()
    return command_line(Path(os.environ["FLINK_HOME"]), client.url, folder)


@pytest.fixture
def start(client, tmp_path):
    """Starts a job, and gives its id once it runs."""
    artifact = client.upload(EXAMPLE.name, EXAMPLE.read_bytes())
    arguments = ("--speed", "86400", "--output", f"{tmp_path}/out", "--no-points")

    def started() -> str:
        job = client.run(RunRequest(Program(artifact, arguments, parallelism=1)))
        wait_until(lambda: client.job(job).all_running, "the job runs")
        return job

    return started


def written(printed: str) -> Path:
    """The savepoint that it says is complete."""
    found = re.search(r"Savepoint completed. Path: (?:file:)?(\S+)", printed)
    assert found, printed
    return Path(found[1])


def test_it_lists_saves_stops_cancels_and_disposes(client, flink, start, tmp_path):
    saved = tmp_path / "engine" / "savepoints"
    job = start()
    assert re.search(rf"{job} : flights.* \(RUNNING\)", flink("list"))
    first = written(flink("savepoint", job, str(saved)))
    assert (first / "_metadata").is_file()
    last = written(flink("stop", "--savepointPath", str(saved), job))
    wait_until(lambda: client.job_status(job) is JobStatus.FINISHED, "it has stopped")
    assert f"{job} : flights" in flink("list", "-a")

    assert "Savepoint '" in (said := flink("savepoint", "-d", str(first))), said
    assert (first.exists(), last.exists()) == (False, True)

    other = start()
    assert f"Cancelled job {other}" in flink("cancel", other)
    wait_until(lambda: client.job_status(other) is JobStatus.CANCELED, "it is cancelled")


def test_it_prints_why_something_cannot_be_done(flink, start):
    unknown = "0" * 32
    assert f"{unknown} not found" in flink("savepoint", unknown)
