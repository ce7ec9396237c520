"""Clusters of real processes, and a client for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from engine.rest.client import EngineClient, EngineUnreachable
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import LocalCluster, wait_until
from integration import recording

JOB_FILE = Path(__file__).parent / "counting_job.py"


@dataclass
class Bench:
    """A cluster, a client and the files of one test."""

    cluster: LocalCluster
    client: EngineClient
    data: Path
    output: Path

    settings: Mapping[str, str] = field(default_factory=dict)
    """Of every job that is submitted."""

    def submit(self, parallelism: int = 2, speed: float = 0, savepoint: str | None = None) -> str:
        """Start the counting job; a speed of 7,200 plays two hours of the recording a second."""
        return self.submit_file(
            JOB_FILE, [str(self.data), str(self.output), str(speed)], parallelism, savepoint
        )

    def submit_file(
        self, file: Path, arguments: list[str], parallelism: int = 2, savepoint: str | None = None
    ) -> str:
        """Start a job file."""
        artifact = self.client.upload(file.name, file.read_bytes())
        program = Program(artifact, tuple(arguments), parallelism, self.settings)
        return self.client.run(RunRequest(program, savepoint_path=savepoint))

    def status(self, job: str) -> JobStatus | None:
        """The state of a job; None while nobody answers."""
        try:
            return self.client.job_status(job)
        except EngineUnreachable:
            return None

    def await_status(self, job: str, *wanted: JobStatus) -> JobStatus:
        """Wait until a job is in one of some states."""

        def look() -> JobStatus | None:
            status = self.status(job)
            return status if status in wanted else None

        return wait_until(look, f"the job is {' or '.join(wanted)}")

    def kill_worker(self, job: str) -> None:
        """Kill -9 a worker, and wait until the job has failed for it."""
        before = len(self.client.job_failures(job))
        self.cluster.kill_worker()
        wait_until(lambda: len(self.client.job_failures(job)) > before, "the job has noticed")

    def await_end(self, job: str) -> JobStatus:
        """Wait until a job has ended."""
        return self.await_status(job, JobStatus.FINISHED, JobStatus.FAILED, JobStatus.CANCELED)

    def await_checkpoints(self, job: str, count: int) -> None:
        """Wait until a running job has completed some more checkpoints, or has ended."""
        before = self.client.checkpoints(job).counts.completed

        def complete() -> bool:
            done = self.client.checkpoints(job).counts.completed - before
            return done >= count or self.client.job_status(job).terminal

        wait_until(complete, f"{count} more checkpoints are complete")

    def await_savepoint(self, job: str, trigger: str) -> str:
        """Wait for a savepoint or stop; return its folder."""
        wait_until(lambda: self.client.savepoint_status(job, trigger).done, "the savepoint is over")
        status = self.client.savepoint_status(job, trigger)
        assert status.failure is None, status.failure
        assert status.location is not None
        return status.location


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording.write(tmp_path_factory.mktemp("recording") / "rows.parquet")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster") / "engine") as cluster:
        yield cluster
    assert cluster.left_over() == []
    assert list((cluster.home / "run").glob("*.sock")) == []


@pytest.fixture(scope="session")
def undisturbed(
    cluster: LocalCluster, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> pl.DataFrame:
    """The output at parallelism 1, with nothing in the way."""
    output = tmp_path_factory.mktemp("undisturbed")
    with EngineClient(cluster.url) as client:
        bench = Bench(cluster, client, data, output)
        assert bench.await_end(bench.submit(parallelism=1)) is JobStatus.FINISHED
    return recording.written(output)


@pytest.fixture
def bench(cluster: LocalCluster, data: Path, tmp_path: Path) -> Iterator[Bench]:
    with EngineClient(cluster.url) as client:
        yield Bench(cluster, client, data, tmp_path / "output")
