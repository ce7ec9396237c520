"""Checkpoints and savepoints in S3 (moto's server), with real processes and kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.checkpoint.inspection.reading import open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.checkpoint.storage.addresses import open_folder
from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import StopRequest
from engine.testing.cluster import LocalCluster, wait_until
from integration import recording
from integration.conftest import Bench
from object_store import SECRET, bucket

pytestmark = pytest.mark.integration

PACE = 3_600 * 5

SETTINGS = {
    "execution.checkpointing.dir": "s3://snapshots/checkpoints",
    "execution.checkpointing.savepoint-dir": "s3://snapshots/savepoints",
    "state.checkpoints.num-retained": "2",
}


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with bucket() as address:
        yield address


def test_kills_a_stop_and_a_rescale_change_nothing(
    store: str, data: Path, tmp_path: Path, undisturbed: pl.DataFrame
) -> None:
    with (
        LocalCluster(tmp_path / "engine", task_managers=1, slots=3) as cluster,
        EngineClient(cluster.url) as client,
    ):
        bench = Bench(cluster, client, data, tmp_path / "output", SETTINGS)
        job = bench.submit(parallelism=1, speed=PACE)
        bench.await_status(job, JobStatus.RUNNING)
        bench.await_checkpoints(job, 2)
        cluster.kill_worker()
        bench.await_checkpoints(job, 3)
        checkpoints = open_folder(f"{store}/checkpoints/{job}")
        wait_until(lambda: len(checkpoints.children()) <= 3, "replaced checkpoints are deleted")
        cluster.kill_job_manager()
        cluster.restart_job_manager()
        bench.await_status(job, JobStatus.RUNNING)
        stopped = bench.await_savepoint(job, client.stop(job, StopRequest()))
        assert stopped.startswith(f"{store}/savepoints/")
        assert verify(open_snapshot(stopped)).is_whole
        assert not (cluster.home / "checkpoints" / job).exists()
        assert bench.await_end(bench.submit(3, savepoint=stopped)) is JobStatus.FINISHED
        assert SECRET not in cluster.log
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)
