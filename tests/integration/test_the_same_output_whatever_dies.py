"""The law, with real processes: any kill, any restore, any parallelism, the same output."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import SavepointRequest, StopRequest
from engine.testing.cluster import LocalCluster, wait_until
from integration import recording
from integration.conftest import Bench

pytestmark = pytest.mark.integration

SLOWLY = 1_500
"""Rows a second: the recording lasts for sixteen seconds, or until the test wants its end."""


def start(bench: Bench, parallelism: int = 2) -> str:
    """A job that is in the midst of its input."""
    bench.settings = {"headwater.read-limit": str(SLOWLY)}
    job = bench.submit(parallelism)
    bench.await_status(job, JobStatus.RUNNING)
    return job


def finish(bench: Bench, job: str) -> JobStatus:
    """Let it read the rest as fast as it can."""
    if not wait_until(lambda: bench.status(job), "somebody answers").terminal:
        bench.client.limit_reading(job, None)
    return bench.await_end(job)


def test_an_undisturbed_job_writes_what_plain_polars_computes(
    undisturbed: pl.DataFrame, data: Path
) -> None:
    truth = recording.expected(data)
    exact = ["window_end", "key", "n"]
    assert_frame_equal(undisturbed.select(exact), truth.select(exact))
    assert_frame_equal(undisturbed, truth, abs_tol=1e-9)


def test_parallelism_changes_no_bit(bench: Bench, undisturbed: pl.DataFrame) -> None:
    assert bench.await_end(bench.submit(parallelism=3)) is JobStatus.FINISHED
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)


def kill_job_manager(cluster: LocalCluster) -> None:
    cluster.kill_job_manager()
    cluster.restart_job_manager()


KILLS: dict[str, Callable[[LocalCluster], object]] = {
    "a worker": LocalCluster.kill_worker,
    "a task manager": LocalCluster.kill_task_manager,
    "the job manager": kill_job_manager,
}


@pytest.mark.parametrize("victim", KILLS)
def test_a_kill_changes_nothing(bench: Bench, undisturbed: pl.DataFrame, victim: str) -> None:
    job = start(bench)
    bench.await_checkpoints(job, 3)
    KILLS[victim](bench.cluster)
    assert finish(bench, job) is JobStatus.FINISHED
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)
    assert hidden_files(bench.output) == []


@pytest.mark.parametrize("seed", range(2))
def test_kills_at_random_moments_change_nothing(
    bench: Bench, undisturbed: pl.DataFrame, seed: int
) -> None:
    chance = random.Random(seed)
    job = start(bench)
    for victim in chance.choices(sorted(KILLS), k=3):
        bench.await_status(job, JobStatus.RUNNING, JobStatus.FINISHED)
        if bench.status(job) is JobStatus.RUNNING:
            bench.await_checkpoints(job, chance.randrange(3))
            if bench.cluster.workers():
                KILLS[victim](bench.cluster)
    assert finish(bench, job) is JobStatus.FINISHED, f"seed {seed}"
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)


def test_a_job_stopped_and_moved_goes_on_elsewhere_at_another_parallelism(
    bench: Bench, undisturbed: pl.DataFrame, tmp_path: Path
) -> None:
    job = start(bench, parallelism=1)
    bench.await_checkpoints(job, 3)
    stopped = bench.await_savepoint(job, bench.client.stop(job, StopRequest()))
    assert bench.status(job) is JobStatus.FINISHED
    moved = shutil.move(stopped, tmp_path / "moved")

    with (
        LocalCluster(
            tmp_path / "elsewhere",
            task_managers=1,
            slots=3,
            options=("--snapshots", str(tmp_path)),
        ) as cluster,
        EngineClient(cluster.url) as client,
    ):
        elsewhere = Bench(cluster, client, bench.data, bench.output)
        again = elsewhere.submit(parallelism=3, savepoint=str(moved))
        assert elsewhere.await_end(again) is JobStatus.FINISHED
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)


def test_a_savepoint_leaves_the_job_running_and_may_be_taken_away_at_once(
    bench: Bench, undisturbed: pl.DataFrame, tmp_path: Path
) -> None:
    job = start(bench)
    trigger = bench.client.trigger_savepoint(job, SavepointRequest(str(tmp_path / "mine")))
    shutil.rmtree(bench.await_savepoint(job, trigger))
    bench.cluster.kill_worker()
    assert finish(bench, job) is JobStatus.FINISHED
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)


def test_old_checkpoints_are_deleted_and_savepoints_are_not(bench: Bench) -> None:
    job = bench.submit(speed=3_600)
    bench.await_status(job, JobStatus.RUNNING)
    savepoint = bench.await_savepoint(job, bench.client.trigger_savepoint(job, SavepointRequest()))
    bench.await_checkpoints(job, 5)
    bench.client.cancel(job)
    bench.await_status(job, JobStatus.CANCELED)
    folder = bench.cluster.home / "checkpoints" / job
    wait_until(lambda: len(list(folder.glob("chk-*"))) == 3, "three checkpoints are kept")
    assert Path(savepoint, "_metadata").exists()


def hidden_files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob(".*") if file.is_file()]
