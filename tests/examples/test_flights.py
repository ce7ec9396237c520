"""The year of flights on real processes: whatever happens to them, the same table, row for row."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from engine.testing.cluster import LocalCluster
from examples.flights_job import FlightsJob, cut_of
from examples.truth import truth, truth_from, v1, v2

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One cluster for all tests that do not destroy it."""
    with LocalCluster(tmp_path_factory.mktemp("cluster"), task_managers=2, slots=2) as cluster:
        yield cluster


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_undisturbed(cluster: LocalCluster, tmp_path: Path, parallelism: int) -> None:
    job = FlightsJob(cluster.url, tmp_path / "daily", parallelism=parallelism)
    job.wait_until_finished()
    job.assert_output(truth(v1))


@pytest.mark.parametrize("seed", [1])
def test_three_kills_leave_no_trace(cluster: LocalCluster, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    job = FlightsJob(cluster.url, tmp_path / "daily", parallelism=2, days_per_second=40)
    kills: list[Callable[[], object]] = [cluster.kill_worker, cluster.kill_task_manager]
    for kill in [*kills, chance.choice(kills)]:
        job.wait_until_running()
        time.sleep(chance.uniform(0.5, 2.0))
        job.wait_for_failure(kill)
    job.wait_until_finished()
    assert job.failures() >= 3
    job.assert_output(truth(v1))


def test_resumes_elsewhere_at_another_parallelism(tmp_path: Path) -> None:
    """1 -> 3 -> 2: each time the cluster is destroyed and the savepoint's folder moved."""
    output, savepoint = tmp_path / "daily", None
    for home, parallelism, until in (("a", 1, "2013-03"), ("b", 3, "2013-08"), ("c", 2, None)):
        with LocalCluster(tmp_path / home, task_managers=2, slots=2) as cluster:
            pace = 40 if until else 0
            job = FlightsJob(
                cluster.url,
                output,
                parallelism=parallelism,
                days_per_second=pace,
                savepoint=savepoint,
            )
            if until is None:
                job.wait_until_finished()
                break
            job.wait_for_month(until)
            taken = job.stop(tmp_path / home / "taken")
        savepoint = Path(shutil.move(taken, tmp_path / f"savepoint-{home}"))
        shutil.rmtree(tmp_path / home)
    job.assert_output(truth(v1))


def test_version_2_from_a_savepoint_in_march(cluster: LocalCluster, tmp_path: Path) -> None:
    live = FlightsJob(cluster.url, tmp_path / "daily", parallelism=2, days_per_second=40)
    live.wait_for_month("2013-03")
    savepoint = live.savepoint(tmp_path / "savepoints")
    replay = FlightsJob(
        cluster.url,
        tmp_path / "daily",
        version=2,
        parallelism=1,
        savepoint=savepoint,
        shadow="r-1",
    )
    replay.wait_until_finished()
    cut = cut_of(savepoint)
    assert datetime(2013, 3, 1, tzinfo=UTC) < cut.watermark < datetime(2013, 4, 1, tzinfo=UTC)
    replay.assert_output(truth_from(v1, v2, cut))
    live.wait_until_finished()
    live.assert_output(truth(v1))
