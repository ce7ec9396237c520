"""Where a job begins: at the snapshot that it was given, until it has one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.checkpoint.restoring.inputs import Gap, SourceInput
from engine.cluster.jobs.beginnings import keep_beginnings
from engine.cluster.store.rows import SnapshotRow
from engine.elements import MIN_TIME, SnapshotKind
from engine.rest.model.requests import ClaimMode
from engine.runtime import control
from job_stage import JOB, VERTEX, PlayedPeer, Stage, acknowledge, until


@pytest.fixture
async def savepoint(tmp_path: Path) -> str:
    """A savepoint with id 1 of another job."""
    (tmp_path / "before").mkdir()
    stage = Stage(tmp_path / "before")
    stage.master.start()
    workers = await stage.running()
    trigger = stage.request(SnapshotKind.SAVEPOINT)
    acknowledge(workers)
    await until(lambda: stage.operation(trigger).done)
    location = str(stage.operation(trigger).location)
    stage.store.close()
    return location


@pytest.fixture(params=list(ClaimMode))
async def stage(tmp_path: Path, savepoint: str, request: pytest.FixtureRequest):
    """A job that begins at the savepoint."""
    stage = Stage(tmp_path, begin=savepoint, next_id=2)
    if request.param is ClaimMode.CLAIM:
        stage.store.claim(SnapshotRow(JOB, 1, SnapshotKind.CHECKPOINT, savepoint, 1))
    stage.master.start()
    yield stage
    stage.store.close()


def positions(workers: list[PlayedPeer]) -> list[int]:
    """Where each source subtask is told to go on."""
    found = []
    for worker in workers:
        slot = worker.hello.slot
        (prepare,) = worker.of(control.Prepare)
        (part,) = prepare.restores[f"{VERTEX}/{slot}"]["operators"]
        found.append(part["splits"][f"split-{slot}"]["position"])
    return found


async def die(stage: Stage, workers: list[PlayedPeer], attempt: int) -> list[PlayedPeer]:
    for worker in workers:
        stage.gone(worker)
    return await stage.running(attempt)


async def test_a_job_goes_back_to_its_snapshot_until_it_has_one_of_its_own(stage: Stage) -> None:
    workers = await stage.running()
    assert positions(workers) == [10, 11]
    workers = await die(stage, workers, 2)
    assert positions(workers) == [10, 11]
    stage.request(SnapshotKind.CHECKPOINT)
    workers = await die(stage, workers, 3)
    assert positions(workers) == [10, 11]
    stage.request(SnapshotKind.CHECKPOINT)
    own = acknowledge(workers)
    assert own == 3
    await until(lambda: bool(workers[0].of(control.Completed)))
    assert positions(await die(stage, workers, 4)) == [30, 31]


async def test_an_old_savepoint_of_ones_own_is_not_where_a_restart_begins(stage: Stage) -> None:
    workers = await stage.running()
    trigger = stage.request(SnapshotKind.SAVEPOINT)
    acknowledge(workers)
    await until(lambda: stage.operation(trigger).done)
    assert positions(await die(stage, workers, 2)) == [10, 11]


async def test_a_new_job_manager_goes_back_there_too(stage: Stage) -> None:
    await stage.running()
    stage.restart_job_manager()
    assert positions(await stage.running()) == [10, 11]


async def test_a_split_whose_input_was_gone_at_the_start_has_ended_in_every_attempt(
    stage: Stage,
) -> None:
    gap = {"split-1": Gap("lines from 12 on: no file", MIN_TIME)}
    keep_beginnings(stage.home, {"numbers": SourceInput(gap)})
    workers = await die(stage, await stage.running(), 2)
    for slot, worker in enumerate(workers):
        (prepare,) = worker.of(control.Prepare)
        (part,) = prepare.restores[f"{VERTEX}/{slot}"]["operators"]
        assert part["splits"][f"split-{slot}"]["finished"] is (slot == 1)


async def test_the_snapshot_is_deleted_only_if_it_is_the_jobs_own_and_replaced(
    stage: Stage, savepoint: str
) -> None:
    claimed = savepoint in stage.store.snapshot_paths(JOB)
    workers = await stage.running()
    for number in range(4):
        stage.master.request(SnapshotRequest(f"{number:032x}", SnapshotKind.CHECKPOINT))
        acknowledge(workers)
        await until(lambda: len(workers[0].of(control.Completed)) == number + 1)  # noqa: B023
    await until(lambda: len(stage.store.snapshot_paths(JOB)) == 3)
    assert Path(savepoint).exists() is not claimed
