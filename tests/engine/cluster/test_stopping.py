"""Every edge of stopping a job: what else happens meanwhile, and what its operation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster.jobs.operations import What
from engine.elements import AfterBarrier, SnapshotKind
from engine.rest.model.jobs import JobStatus
from engine.runtime import control
from job_stage import JOB, VERTEX, PlayedPeer, Stage, acknowledge, until

SAVEPOINT, CHECKPOINT = SnapshotKind.SAVEPOINT, SnapshotKind.CHECKPOINT
STOP, DRAIN = AfterBarrier.STOP, AfterBarrier.DRAIN


@pytest.fixture
async def stage(tmp_path: Path):
    stage = Stage(tmp_path)
    stage.master.start()
    yield stage
    stage.store.close()


def decline(worker: PlayedPeer) -> None:
    """A subtask could not store its part of the snapshot that was triggered last."""
    checkpoint_id = worker.of(control.Trigger)[-1].checkpoint_id
    worker.say(control.Declined(checkpoint_id, VERTEX, worker.hello.slot, "no room"))


def triggered(worker: PlayedPeer) -> list[tuple[str, str]]:
    return [(trigger.kind, trigger.then) for trigger in worker.of(control.Trigger)]


async def lose(stage: Stage, workers: list[PlayedPeer]) -> None:
    for worker in workers:
        stage.gone(worker)
    await until(lambda: stage.status is JobStatus.RESTARTING)


@pytest.mark.parametrize("then", [STOP, DRAIN])
async def test_a_stop_ends_the_job_and_says_where_its_savepoint_is(
    stage: Stage, then: AfterBarrier
) -> None:
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, then)
    acknowledge(workers)
    await stage.finish(workers)
    location = stage.operation(stop).location
    assert location is not None
    assert Path(location, "_metadata").exists()


async def test_a_stop_begins_beside_a_checkpoint_and_ends_it(stage: Stage) -> None:
    workers = await stage.running()
    checkpoint = stage.request(CHECKPOINT)
    stop = stage.request(SAVEPOINT, STOP)
    acknowledge(workers, 2)
    await stage.finish(workers)
    assert stage.operation(stop).failure is None
    assert await stage.failure(checkpoint) == (
        "checkpoint 1 failed, a newer one was complete before it: savepoint 2"
    )


async def test_a_stop_waits_for_a_savepoint_that_is_under_way(stage: Stage) -> None:
    workers = await stage.running()
    savepoint, stop = stage.request(SAVEPOINT), stage.request(SAVEPOINT, STOP)
    assert triggered(workers[0]) == [("savepoint", "continue")]
    acknowledge(workers)
    await until(lambda: len(triggered(workers[0])) == 2)
    acknowledge(workers)
    await stage.finish(workers)
    locations = {stage.operation(trigger).location for trigger in (savepoint, stop)}
    assert len(locations - {None}) == 2


async def test_a_stop_asked_for_during_a_restart_is_begun_when_the_job_runs(stage: Stage) -> None:
    workers = await stage.running()
    stage.gone(workers[0])
    assert stage.status is JobStatus.RESTARTING
    stop = stage.request(SAVEPOINT, STOP)
    assert triggered(workers[1]) == []
    stage.gone(workers[1])
    again = await stage.running(attempt=2)
    acknowledge(again)
    await stage.finish(again)
    assert stage.operation(stop).failure is None


async def test_a_stop_that_waited_for_its_turn_when_a_worker_died_is_begun_when_the_job_runs(
    stage: Stage,
) -> None:
    workers = await stage.running()
    savepoint, stop = stage.request(SAVEPOINT), stage.request(SAVEPOINT, STOP)
    await lose(stage, workers)
    assert await stage.failure(savepoint) == (
        "savepoint 1 failed, the job restarted before the snapshot was complete"
    )
    again = await stage.running(attempt=2)
    acknowledge(again)
    await stage.finish(again)
    assert stage.operation(stop).failure is None


async def test_a_stop_asked_for_during_a_rescale_is_begun_when_the_job_runs(stage: Stage) -> None:
    workers = await stage.running()
    rescale, _ = stage.operations.begin(What.RESCALE, JOB, None)
    stage.master.rescale(rescale, {"numbers": 1})
    early = stage.request(SAVEPOINT, STOP)
    acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))
    late = stage.request(SAVEPOINT)
    for worker in workers:
        worker.say(control.TaskFinished(VERTEX, worker.hello.slot))
    for worker in workers:
        stage.gone(worker, code=0)
    again = await stage.running(attempt=2, count=1)
    assert triggered(again[0]) == [("savepoint", "stop")]
    acknowledge(again)
    await stage.finish(again)
    assert stage.operation(early).failure is None
    assert "the job was stopped first" in await stage.failure(late)


async def test_a_stop_of_a_job_that_does_not_come_to_run_fails_and_changes_nothing(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, timeout_ms=10)
    stage.master.start()
    stop = stage.request(SAVEPOINT, STOP)
    assert await stage.failure(stop) == (
        "savepoint failed: not every subtask of the job runs: waited 0.01 s for it; "
        "ask again when it runs"
    )
    assert triggered((await stage.running())[0]) == []
    stage.store.close()


async def test_a_stop_succeeds_when_a_source_has_finished(stage: Stage) -> None:
    workers = await stage.running()
    workers[0].say(control.EndOfInputReached(VERTEX, 0))
    stop = stage.request(SAVEPOINT, STOP)
    acknowledge(workers)
    await stage.finish(workers)
    assert stage.operation(stop).failure is None


async def test_a_stop_that_comes_when_all_input_has_ended_says_so(stage: Stage) -> None:
    workers = await stage.running()
    for slot, worker in enumerate(workers):
        worker.say(control.EndOfInputReached(VERTEX, slot))
    stop = stage.request(SAVEPOINT, STOP)
    assert triggered(workers[0]) == [("checkpoint", "stop")]
    acknowledge(workers)
    await stage.finish(workers)
    assert await stage.failure(stop) == (
        "savepoint failed: the job ended first, because its input had"
    )


async def test_a_stop_whose_savepoint_cannot_be_stored_leaves_the_job_running(
    stage: Stage,
) -> None:
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, STOP)
    decline(workers[1])
    assert await stage.failure(stop) == (
        "savepoint 1 failed, a subtask could not write its part: "
        "numbers 1: no room; the job runs on"
    )
    assert [aborted.checkpoint_id for aborted in workers[0].of(control.Aborted)] == [1]
    assert stage.status is JobStatus.RUNNING
    again = stage.request(SAVEPOINT, STOP)
    acknowledge(workers)
    await stage.finish(workers)
    assert stage.operation(again).failure is None


async def test_a_stop_that_cannot_be_recorded_leaves_the_job_running(stage: Stage) -> None:
    (stage.home / "savepoints").write_text("in the way")
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, STOP)
    acknowledge(workers)
    failure = await stage.failure(stop)
    assert failure.startswith("savepoint 1 failed, it could not be recorded: snapshot file ")
    assert failure.endswith("; the job runs on")
    assert stage.status is JobStatus.RUNNING


async def test_a_drain_that_fails_restarts_the_job_and_says_so(stage: Stage) -> None:
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, DRAIN)
    decline(workers[1])
    assert (await stage.failure(stop)).endswith("no room; the job restarts")
    await lose(stage, workers)
    await stage.running(attempt=2)


async def test_a_worker_that_dies_before_the_savepoint_is_complete_restarts_the_job(
    stage: Stage,
) -> None:
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, STOP)
    acknowledge(workers[:1])
    await lose(stage, workers)
    assert await stage.failure(stop) == (
        "savepoint 1 failed, the job restarted before the snapshot was complete"
    )
    again = await stage.running(attempt=2)
    assert triggered(again[0]) == []
    assert not (stage.home / "savepoints").exists()


async def test_a_job_manager_that_dies_during_a_stop_leaves_a_job_that_runs_on(
    stage: Stage,
) -> None:
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, STOP)
    acknowledge(workers[:1])
    stage.restart_job_manager()
    assert await stage.failure(stop) == (
        "stop was given up: the job manager restarted; ask for it again"
    )
    assert triggered((await stage.running())[0]) == []


async def test_a_job_manager_that_dies_after_the_savepoint_only_has_it_committed(
    stage: Stage,
) -> None:
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, STOP)
    acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))
    stage.restart_job_manager()
    again = await stage.workers()
    for worker in again:
        worker.say(control.WorkerReady())
    assert [type(message) for message in again[0].got] == [control.Prepare, control.Stop]
    for worker in again:
        stage.gone(worker, code=0)
    await until(lambda: stage.status is JobStatus.FINISHED)
    assert stage.operation(stop).location is not None


async def test_the_second_of_two_stops_is_told_of_the_first(stage: Stage) -> None:
    workers = await stage.running()
    first, second = stage.request(SAVEPOINT, STOP), stage.request(SAVEPOINT, DRAIN)
    acknowledge(workers)
    await stage.finish(workers)
    location = stage.operation(first).location
    assert await stage.failure(second) == (
        f"savepoint failed: the job was stopped first: its savepoint is {location}"
    )


async def test_the_second_of_two_stops_is_begun_when_the_first_has_failed(stage: Stage) -> None:
    workers = await stage.running()
    first, second = stage.request(SAVEPOINT, STOP), stage.request(SAVEPOINT, STOP)
    decline(workers[0])
    assert await stage.failure(first)
    acknowledge(workers)
    await stage.finish(workers)
    assert stage.operation(second).failure is None


async def test_a_cancel_during_a_stop_wins_and_the_stop_says_so(stage: Stage) -> None:
    workers = await stage.running()
    stop = stage.request(SAVEPOINT, STOP)
    stage.master.cancel()
    for worker in workers:
        stage.gone(worker)
    await until(lambda: stage.status is JobStatus.CANCELED)
    assert await stage.failure(stop) == (
        "savepoint 1 failed, the job was cancelled before the snapshot was complete"
    )
    assert not (stage.home / "savepoints").exists()


@pytest.mark.parametrize("fails", [False, True])
async def test_a_savepoint_asked_for_during_a_stop_is_taken_if_the_stop_fails(
    stage: Stage, fails: bool
) -> None:
    workers = await stage.running()
    stage.request(SAVEPOINT, STOP)
    savepoint = stage.request(SAVEPOINT)
    if fails:
        decline(workers[0])
        acknowledge(workers)
        await until(lambda: stage.operation(savepoint).done)
        assert stage.operation(savepoint).failure is None
        return
    acknowledge(workers)
    await stage.finish(workers)
    assert "the job was stopped first: its savepoint is" in await stage.failure(savepoint)


async def test_a_savepoint_before_a_cancel_has_to_succeed_first(stage: Stage) -> None:
    workers = await stage.running()
    failed = stage.request(SAVEPOINT, what=What.CANCEL)
    decline(workers[0])
    assert await stage.failure(failed)
    assert stage.status is JobStatus.RUNNING
    stage.request(SAVEPOINT, what=What.CANCEL)
    acknowledge(workers)
    await until(lambda: stage.status is JobStatus.CANCELLING)
