"""Another parallelism for a running job: every step, every failure, every kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster.jobs.operations import What
from engine.cluster.jobs.rescale import parallelism_in
from engine.cluster.machines.fleet import Fleet
from engine.elements import SnapshotKind
from engine.errors import ConfigError, StorageError
from engine.rest.model.jobs import JobStatus
from engine.runtime import control
from job_stage import JOB, VERTEX, PlayedPeer, Stage, acknowledge, no_room, until


@pytest.fixture
async def stage(tmp_path: Path):
    stage = Stage(tmp_path)
    stage.master.start()
    yield stage
    stage.store.close()


def finished(workers: list[PlayedPeer], stage: Stage) -> None:
    """Every subtask has committed and ended, and its worker with it."""
    for worker in workers:
        worker.say(control.TaskFinished(VERTEX, worker.hello.slot))
    for worker in workers:
        stage.gone(worker, code=0)


def rescale(stage: Stage, parallelism: int) -> str:
    """Ask for another parallelism, as REST does."""
    trigger, _ = stage.operations.begin(What.RESCALE, JOB, None)
    stage.master.rescale(trigger, {"numbers": parallelism})
    return trigger


async def suspended(stage: Stage, workers: list[PlayedPeer], attempts: int = 2) -> None:
    """The checkpoint of a rescale is complete, and another attempt has begun."""
    complete = control.Completed(acknowledge(workers))
    await until(lambda: complete in workers[0].got)
    finished(workers, stage)
    await until(lambda: len(stage.started()) >= attempts)


async def test_a_rescale_suspends_the_job_and_starts_it_at_the_other_parallelism(
    stage: Stage,
) -> None:
    workers = await stage.running()
    trigger = rescale(stage, 1)
    (barrier,) = workers[0].of(control.Trigger)
    assert (barrier.kind, barrier.then) == ("checkpoint", "suspend")
    await suspended(stage, workers, attempts=3)
    assert stage.status is JobStatus.RESTARTING
    assert stage.started()[-1].parallelism == {"numbers": 1}
    assert not stage.operations.status(trigger, "rescale", JOB).done
    (worker,) = await stage.running(attempt=2, count=1)
    (prepare,) = worker.of(control.Prepare)
    (part,) = prepare.restores[f"{VERTEX}/0"]["operators"]
    assert set(part["splits"]) == {"split-0", "split-1"}
    done = stage.operations.status(trigger, "rescale", JOB)
    assert (done.done, done.failure, stage.master.restarts) == (True, None, 0)


async def test_a_rescale_whose_checkpoint_fails_leaves_the_job_as_it_was(stage: Stage) -> None:
    workers = await stage.running()
    trigger = rescale(stage, 1)
    workers[0].say(control.Declined(1, VERTEX, 0, "disk is full"))
    status = stage.operations.status(trigger, "rescale", JOB)
    assert status.failure is not None
    assert "disk is full" in status.failure
    assert (stage.status, stage.master.rescaling.pending) == (JobStatus.RUNNING, None)
    assert workers[0].of(control.Aborted)


async def test_a_job_that_cannot_start_at_the_new_parallelism_goes_back(stage: Stage) -> None:
    workers = await stage.running()
    trigger = rescale(stage, 1)
    await suspended(stage, workers, attempts=3)
    (worker,) = await stage.workers(attempt=2, count=1)
    worker.say(control.Failed("SourceError", "user", "one reader is too few", "…", VERTEX, 0))
    stage.gone(worker, code=1)
    await until(lambda: len(stage.started()) == 5)
    assert stage.started()[-1].parallelism == {"numbers": 2}
    assert stage.operations.status(trigger, "rescale", JOB).failure == (
        "rescale failed, the job goes on as it was: one reader is too few"
    )
    await stage.running(attempt=3)
    assert stage.status is JobStatus.RUNNING


async def test_slots_that_are_lost_meanwhile_send_a_rescale_back(stage: Stage) -> None:
    workers = await stage.running()
    trigger = rescale(stage, 3)  # REST refuses it at once, if there are no slots by then
    await suspended(stage, workers, attempts=4)
    assert stage.operations.status(trigger, "rescale", JOB).failure == (
        "rescale failed, the job goes on as it was: waits for 3 slots, 2 free"
    )
    await stage.running(attempt=2)
    assert len(stage.master.attempt.tasks) == 2


@pytest.mark.parametrize("step", ["asked", "suspended", "switched"])
async def test_a_rescale_goes_on_after_the_job_manager_was_killed_at_any_step(
    stage: Stage, step: str
) -> None:
    workers = await stage.running()
    trigger = rescale(stage, 1)
    if step == "suspended":
        acknowledge(workers)
        await until(lambda: bool(workers[0].of(control.Completed)))
    elif step == "switched":
        await suspended(stage, workers, attempts=3)

    stage.fleet = Fleet(stage.store, lambda: stage.master.on_slots())
    stage.operations.close_left_over()
    stage.master = stage.new_master()
    stage.master.recover()
    stage.task_manager = PlayedPeer(stage.fleet, control.TaskManagerHello("tm-1", 0, 2, "h"))
    await stage.running(count=1)
    status = stage.operations.status(trigger, "rescale", JOB)
    assert (status.done, status.failure, stage.status) == (True, None, JobStatus.RUNNING)
    assert stage.new_master().plan.vertices[0].parallelism == 1
    assert stage.new_master().rescaling.pending is None


async def test_restarts_and_rescales_are_told_apart_also_after_the_job_manager_was_killed(
    stage: Stage,
) -> None:
    workers = await stage.running()
    rescale(stage, 1)
    await suspended(stage, workers, attempts=3)
    await stage.running(attempt=2, count=1)
    assert (stage.master.restarts, stage.master.rescaling.count) == (0, 1)
    stage.restart_job_manager()
    await stage.running(count=1)
    assert (stage.master.restarts, stage.master.rescaling.count) == (1, 1)
    stage.restart_job_manager()
    assert (stage.master.restarts, stage.master.rescaling.count) == (2, 1)


async def test_a_job_that_waits_for_slots_starts_at_once_at_a_smaller_parallelism(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    stage.fleet.allocate("another job", 1)
    stage.master.start()
    assert stage.master.waiting_for == "waits for 2 slots, 1 free"
    trigger = rescale(stage, 1)
    await stage.running(count=1)
    assert stage.operations.status(trigger, "rescale", JOB).done
    stage.store.close()


async def test_a_rescaled_job_can_be_cancelled_at_any_step(stage: Stage) -> None:
    workers = await stage.running()
    trigger = rescale(stage, 1)
    acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))
    for worker in workers:
        worker.say(control.TaskFinished(VERTEX, worker.hello.slot))
    stage.master.cancel()
    assert stage.status is JobStatus.CANCELLING
    for worker in workers:
        stage.gone(worker)
    await until(lambda: stage.status is JobStatus.CANCELED)
    failure = stage.operations.status(trigger, "rescale", JOB).failure
    assert failure == "rescale was given up: the job is CANCELED"


async def test_a_job_whose_input_has_ended_is_rescaled_before_it_ends(stage: Stage) -> None:
    workers = await stage.running()
    stage.request(SnapshotKind.CHECKPOINT)
    trigger = rescale(stage, 1)  # it waits for the checkpoint
    for worker in workers:
        worker.say(control.EndOfInputReached(VERTEX, worker.hello.slot))
    acknowledge(workers, 1)
    await until(lambda: len(workers[0].of(control.Trigger)) == 2)
    await suspended(stage, workers, attempts=3)
    (worker,) = await stage.running(attempt=2, count=1)
    assert stage.operations.status(trigger, "rescale", JOB).failure is None
    worker.say(control.EndOfInputReached(VERTEX, 0))
    await until(lambda: bool(worker.of(control.Trigger)))
    assert worker.of(control.Trigger)[0].then == "stop"


async def test_without_room_for_the_wish_nothing_begins(stage: Stage) -> None:
    await stage.running()
    with no_room(stage.store), pytest.raises(StorageError):
        stage.master.rescale("ab" * 16, {"numbers": 1})
    assert stage.master.rescaling.pending is None


async def test_without_room_for_the_switch_the_job_goes_on_as_it_was(stage: Stage) -> None:
    workers = await stage.running()
    trigger = rescale(stage, 1)
    acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))
    with no_room(stage.store):
        finished(workers, stage)
        await until(lambda: len(stage.started()) == 4)
    await stage.running(attempt=2)
    failure = stage.operations.status(trigger, "rescale", JOB).failure
    assert str(failure).startswith("rescale failed, the job goes on as it was: store")


@pytest.mark.parametrize("setting", ["numbers", "numbers=x", "=2"])
def test_a_parallelism_that_is_none_is_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="must be uid=number: got"):
        parallelism_in({"headwater.parallelism": setting})
