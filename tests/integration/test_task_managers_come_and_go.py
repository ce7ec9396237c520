"""Task managers that are started, stopped, lost, and hang."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.rest.client import EngineClient, NotFound, Refused
from engine.rest.model.jobs import JobStatus
from engine.testing.cluster import LocalCluster, wait_until
from integration.conftest import Bench

pytestmark = pytest.mark.integration

QUICK = ("-D", "heartbeat.interval=200ms", "-D", "heartbeat.timeout=8s")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster in which silence is noticed soon, but a busy machine is not taken for silent."""
    home = tmp_path_factory.mktemp("quick") / "engine"
    with LocalCluster(home, task_managers=1, slots=1, options=QUICK) as cluster:
        yield cluster
    assert cluster.left_over() == []


@pytest.fixture
def on(quick: LocalCluster, data: Path, tmp_path: Path) -> Iterator[Bench]:
    with EngineClient(quick.url) as client:
        wait_until(lambda: len(client.task_managers()) == 1, "one task manager is there")
        yield Bench(quick, client, data, tmp_path / "output")


def await_task_managers(bench: Bench, *names: str) -> None:
    wait_until(
        lambda: {one.address for one in bench.client.task_managers()} == set(names),
        f"the task managers are {', '.join(names)}",
    )


def test_one_that_is_started_takes_jobs_and_one_that_is_stopped_stays_away(on: Bench) -> None:
    job = on.submit(parallelism=2, speed=3_600)
    assert on.client.job(job).waiting_for == "waits for 2 slots, 1 free"
    assert on.client.start_task_manager() == "tm-2"
    on.await_status(job, JobStatus.RUNNING)
    with pytest.raises(Refused, match="task manager tm-2 runs already"):
        on.client.start_task_manager("tm-2")
    on.client.stop_task_manager("tm-2")
    await_task_managers(on, "tm-1")
    wait_until(lambda: on.client.job(job).waiting_for is not None, "the job waits")
    assert on.client.job_failures(job)[0].sentence.endswith("tm-2 lost: it was told to stop")
    assert set(on.client.local_task_managers().pids) == {"tm-1"}
    with pytest.raises(NotFound):
        on.client.stop_task_manager("tm-2")
    on.client.cancel(job)


def test_a_lost_one_is_left_lost_when_told(on: Bench) -> None:
    assert not on.client.respawn_task_managers(False).respawn
    on.cluster.kill_task_manager()
    await_task_managers(on)
    assert on.client.local_task_managers().pids == {"tm-1": None}
    job = on.submit(parallelism=1)
    assert on.client.job(job).waiting_for == "waits for 1 slot, 0 free"
    assert on.client.respawn_task_managers(True).respawn
    assert on.await_end(job) is JobStatus.FINISHED


def test_one_that_hangs_is_lost_and_replaced_and_its_worker_never_wakes(on: Bench) -> None:
    job = on.submit(parallelism=1, speed=3_600)
    on.await_status(job, JobStatus.RUNNING)
    on.await_checkpoints(job, 1)
    (stuck,), (worker,) = on.cluster.task_managers(), on.cluster.workers()[:1]
    for process in (worker, stuck):
        process.send_signal(signal.SIGSTOP)
    wait_until(lambda: not (stuck.is_running() or worker.is_running()), "both are gone")
    on.await_checkpoints(job, 1)
    assert on.client.job_failures(job)[0].sentence.endswith("tm-1 lost: it was silent for 8 s")
    on.client.cancel(job)
    on.await_end(job)
