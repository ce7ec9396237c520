"""The year of flights on real processes: whatever happens to them, the same table, row for row."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.testing.cluster import LocalCluster
from examples.flights_job import FlightsJob, cut_of
from examples.truth import read_output, truth, truth_from, v1, v2

Start = Callable[..., FlightsJob]

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One cluster for all tests that do not destroy it."""
    with LocalCluster(tmp_path_factory.mktemp("cluster"), task_managers=2, slots=2) as cluster:
        yield cluster


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts jobs; their connections are closed with the test."""
    with ExitStack() as stack:

        def start(*args: Any, **settings: Any) -> FlightsJob:
            return stack.enter_context(closing(FlightsJob(*args, **settings)))

        yield start


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_undisturbed(cluster: LocalCluster, start: Start, tmp_path: Path, parallelism: int) -> None:
    job = start(cluster.url, tmp_path / "daily", parallelism=parallelism)
    job.wait_until_finished()
    job.assert_output(truth(v1))


@pytest.mark.parametrize("seed", [1])
def test_three_kills_leave_no_trace(
    cluster: LocalCluster, start: Start, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    job = start(cluster.url, tmp_path / "daily", parallelism=2, days_per_second=20)
    kills: list[Callable[[], object]] = [cluster.kill_worker, cluster.kill_task_manager]
    for kill in [*kills, chance.choice(kills)]:
        job.wait_until_running()
        time.sleep(chance.uniform(0.5, 2.0))
        job.wait_for_failure(kill)
    job.wait_until_finished()
    assert job.failures() >= 3
    job.assert_output(truth(v1))


def test_resumes_elsewhere_at_another_parallelism(start: Start, tmp_path: Path) -> None:
    """1 -> 3 -> 2: each time the cluster is destroyed and the savepoint's folder moved."""
    output, savepoint = tmp_path / "daily", None
    allowed = ("--snapshots", str(tmp_path))
    for home, parallelism, month in (("a", 1, "2013-02"), ("b", 3, "2013-06")):
        with LocalCluster(tmp_path / home, task_managers=2, slots=2, options=allowed) as cluster:
            # Open-ended, so that it can be stopped however late this test is.
            job = start(
                cluster.url,
                output,
                parallelism=parallelism,
                days_per_second=15,
                bounded=False,
                savepoint=savepoint,
            )
            job.wait_for_month(month)
            taken = job.stop(tmp_path / home / "taken")
        savepoint = Path(shutil.move(taken, tmp_path / f"savepoint-{home}"))
        shutil.rmtree(tmp_path / home)
    with LocalCluster(tmp_path / "c", task_managers=2, slots=1, options=allowed) as cluster:
        job = start(cluster.url, output, parallelism=2, savepoint=savepoint)
        job.wait_until_finished()
        job.assert_output(truth(v1))


def test_version_2_from_a_savepoint_taken_on_the_way(
    cluster: LocalCluster, start: Start, tmp_path: Path
) -> None:
    live = start(cluster.url, tmp_path / "daily", parallelism=2, days_per_second=10, bounded=False)
    live.wait_for_event_time(datetime(2013, 3, 1, tzinfo=UTC))
    savepoint = live.savepoint(tmp_path / "savepoints")
    replay = start(
        cluster.url,
        tmp_path / "daily",
        version=2,
        parallelism=1,
        savepoint=savepoint,
        shadow="r-1",
    )
    replay.wait_until_finished()
    cut = cut_of(savepoint)
    assert cut.watermark >= datetime(2013, 3, 1, tzinfo=UTC)  # how much later, the machine decides
    replay.assert_output(truth_from(v1, v2, cut))
    live.cancel()
    written = read_output(live.output)
    reached = pl.col("window_end") <= written["window_end"].max()
    assert_frame_equal(written, truth(v1).filter(reached), check_exact=True)
