"""The life of a job: deployments, failures, snapshots, on a stage without processes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.checkpoint.coordination.effects import SnapshotRequest
from engine.clock import monotonic
from engine.cluster.answers.state_queries import StateQueries
from engine.cluster.machines.fleet import START_SILENCE_S, Fleet
from engine.elements import AfterBarrier, SnapshotKind
from engine.errors import StorageError
from engine.rest.errors import Conflict, Unavailable
from engine.rest.model.jobs import JobStatus, TaskStatus
from engine.rest.model.states import StateQuery
from engine.runtime import control
from job_stage import JOB, VERTEX, PlayedPeer, Stage, acknowledge, no_room, until


@pytest.fixture
async def stage(tmp_path: Path):
    stage = Stage(tmp_path)
    stage.master.start()
    yield stage
    stage.store.close()


async def test_no_worker_runs_before_all_are_ready(stage: Stage) -> None:
    first, second = await stage.workers()
    assert [type(message) for message in first.got] == [control.Prepare]
    first.say(control.WorkerReady())
    assert first.of(control.Run) == []
    second.say(control.WorkerReady())
    assert [len(worker.of(control.Run)) for worker in (first, second)] == [1, 1]
    assert stage.status is JobStatus.RUNNING


async def test_sources_of_a_watermark_group_hear_how_far_the_slowest_of_them_is(
    stage: Stage,
) -> None:
    workers = await stage.running()
    for slot, watermark in ((0, 70), (1, 50), (0, 90), (1, 60)):
        workers[slot].say(control.SourceProgress(VERTEX, slot, watermark))
    told = [control.Align("numbers", 50), control.Align("numbers", 60)]
    assert [worker.of(control.Align) for worker in workers] == [told, told]


async def test_a_job_finishes_when_every_subtask_has_and_the_workers_are_gone(
    stage: Stage,
) -> None:
    workers = await stage.running()
    for worker in workers:
        worker.say(control.TaskFinished(VERTEX, worker.hello.slot))
    assert all(worker.of(control.Stop) for worker in workers)
    assert stage.status is JobStatus.RUNNING
    for worker in workers:
        stage.gone(worker, code=0)
    await until(lambda: stage.status is JobStatus.FINISHED)
    assert sum(stage.fleet.slots.free().values()) == 2


async def test_the_next_attempt_starts_only_when_no_worker_of_the_last_one_runs(
    stage: Stage,
) -> None:
    first, second = await stage.running()
    stage.gone(first)
    assert stage.status is JobStatus.RESTARTING
    assert len(stage.task_manager.of(control.KillWorkers)) == 1
    await asyncio.sleep(0.02)
    assert len(stage.started()) == 2
    stage.gone(second)
    await stage.running(attempt=2)
    assert stage.master.restarts == 1


async def test_a_job_manager_that_ends_leaves_a_waiting_restart_to_the_next_one(
    stage: Stage,
) -> None:
    for worker in await stage.running():
        stage.gone(worker)
    await stage.master.end_work()
    await asyncio.sleep(0.05)
    assert (stage.status, stage.master.restarts) == (JobStatus.RESTARTING, 0)


async def test_the_first_failure_is_the_cause_and_others_stand_beside_it(stage: Stage) -> None:
    first, second = await stage.running()
    failed = control.Failed("FunctionError", "user", "bad row", "…", VERTEX, 0, "numbers")
    first.say(failed)
    second.say(control.Failed("KeyError", "internal", "'x'", "…", VERTEX, 1, "numbers"))
    stage.gone(first, code=1)
    stage.gone(second)
    await until(lambda: len(stage.started()) == 4)
    (cause,) = stage.master.failures.newest_first
    assert (cause.name, cause.message) == ("FunctionError", "bad row")
    assert cause.task == "numbers (1/2) - execution #0"
    assert [other.name for other in cause.concurrent] == ["KeyError"]


async def test_failures_count_over_job_managers_also_one_that_was_killed_in_a_restart(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, attempts=1)
    stage.master.start()
    first, second = await stage.running()
    first.say(control.Failed("KeyError", "internal", "'x'", "…", VERTEX, 0, "numbers"))
    second.say(control.Failed("KeyError", "internal", "'y'", "…", VERTEX, 1, "numbers"))

    stage.fleet = Fleet(stage.store, lambda: stage.master.on_slots())
    stage.master = stage.new_master()
    stage.master.recover()
    (cause,) = stage.master.failures.newest_first
    assert (cause.operator, [other.message for other in cause.concurrent]) == ("numbers", ["'y'"])
    stage.task_manager = PlayedPeer(stage.fleet, control.TaskManagerHello("tm-1", 0, 2, "h"))
    first, second = await stage.running()
    stage.gone(first)
    stage.gone(second)
    await until(lambda: stage.status is JobStatus.FAILED)
    assert stage.master.failure is not None
    assert stage.master.failure.verdict == "no restart is left: fixed delay, 1 × 0s"
    stage.store.close()


async def test_a_checkpoint_is_recorded_before_it_is_committed_and_restored_after_a_failure(
    stage: Stage,
) -> None:
    workers = await stage.running()
    stage.request(SnapshotKind.CHECKPOINT)
    checkpoint_id = acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))
    point = stage.store.recovery_point(JOB)
    assert point is not None
    assert point.checkpoint_id == checkpoint_id
    for worker in workers:
        stage.gone(worker)
    again = await stage.workers(attempt=2)
    (prepare,) = again[1].of(control.Prepare)
    (part,) = prepare.restores[f"{VERTEX}/1"]["operators"]
    assert part["splits"]["split-1"]["position"] == 10 * checkpoint_id + 1


async def test_checkpoint_ids_go_on_after_a_failure(stage: Stage) -> None:
    workers = await stage.running()
    stage.request(SnapshotKind.CHECKPOINT)
    for worker in workers:
        stage.gone(worker)
    again = await stage.running(attempt=2)
    stage.request(SnapshotKind.CHECKPOINT)
    assert [trigger.checkpoint_id for trigger in again[0].of(control.Trigger)] == [2]


async def test_a_persons_savepoint_commits_nothing_and_is_not_where_a_restart_begins(
    stage: Stage,
) -> None:
    workers = await stage.running()
    trigger = stage.request(SnapshotKind.SAVEPOINT)
    acknowledge(workers)
    await until(lambda: stage.operations.status(trigger, "savepoint", JOB).done)
    location = stage.operations.status(trigger, "savepoint", JOB).location
    assert location is not None
    assert Path(location, "_metadata").exists()
    assert workers[0].of(control.Completed) == []
    assert stage.store.recovery_point(JOB) is None


async def test_a_stop_that_is_complete_is_only_committed_after_a_failure_not_run_again(
    stage: Stage,
) -> None:
    workers = await stage.running()
    trigger = stage.request(SnapshotKind.SAVEPOINT, AfterBarrier.STOP)
    acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))
    assert not stage.operations.status(trigger, "savepoint", JOB).done
    for worker in workers:
        stage.gone(worker)
    again = await stage.workers(attempt=2)
    for worker in again:
        worker.say(control.WorkerReady())
    assert [type(message) for message in again[0].got] == [control.Prepare, control.Stop]
    for worker in again:
        stage.gone(worker, code=0)
    await until(lambda: stage.status is JobStatus.FINISHED)
    assert stage.operations.status(trigger, "savepoint", JOB).done


async def test_a_savepoint_asked_for_during_a_restart_is_taken_when_the_job_runs(
    stage: Stage,
) -> None:
    trigger = stage.request(SnapshotKind.SAVEPOINT)
    assert not stage.operations.status(trigger, "savepoint", JOB).done
    acknowledge(await stage.running())
    await until(lambda: stage.operations.status(trigger, "savepoint", JOB).done)
    assert stage.operations.status(trigger, "savepoint", JOB).failure is None


async def test_a_cancelled_job_has_ended_when_its_workers_are_gone(stage: Stage) -> None:
    workers = await stage.running()
    waiting = stage.request(SnapshotKind.SAVEPOINT)
    stage.master.cancel()
    assert stage.status is JobStatus.CANCELLING
    for worker in workers:
        stage.gone(worker)
    await until(lambda: stage.status is JobStatus.CANCELED)
    failure = stage.operations.status(waiting, "savepoint", JOB).failure
    assert failure == "savepoint 1 failed, the job was cancelled before the snapshot was complete"
    assert len(stage.started()) == 2


async def test_a_worker_that_connects_after_its_attempt_is_over_is_cut(stage: Stage) -> None:
    await until(lambda: len(stage.started()) == 2)
    late = stage.started()[0]
    stage.master.cancel()
    for spec in stage.started():
        exited = control.WorkerExited(spec.attempt_id, spec.slot, 0, -9)
        stage.task_manager.say(exited)
    peer = PlayedPeer(stage.fleet, control.WorkerHello(late.attempt_id, late.slot, 0))
    assert peer.is_cut
    assert peer.got == []


async def test_a_lost_task_manager_is_a_lost_worker_and_the_job_waits_for_slots(
    stage: Stage,
) -> None:
    await stage.running()
    stage.fleet.on_gone(stage.task_manager)
    await until(lambda: stage.master.waiting_for is not None)
    assert stage.master.waiting_for == "waits for 2 slots, 0 free"
    stage.task_manager = PlayedPeer(stage.fleet, control.TaskManagerHello("tm-2", 0, 2, "h"))
    await stage.running()


async def test_a_new_job_manager_goes_on_from_the_latest_checkpoint(stage: Stage) -> None:
    workers = await stage.running()
    stage.request(SnapshotKind.CHECKPOINT)
    acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))

    stage.fleet = Fleet(stage.store, lambda: stage.master.on_slots())
    stage.master = stage.new_master()
    stage.master.recover()
    assert stage.status is JobStatus.RESTARTING
    stage.task_manager = PlayedPeer(stage.fleet, control.TaskManagerHello("tm-1", 0, 2, "h"))
    again = await stage.running()
    assert again[0].of(control.Prepare)[0].restores


async def test_a_task_manager_whose_name_is_taken_is_refused(stage: Stage) -> None:
    other = PlayedPeer(stage.fleet, control.TaskManagerHello("tm-1", 0, 8, "h"))
    assert other.is_cut
    assert stage.fleet.slots.task_managers == {"tm-1": 2}


async def test_subtasks_of_an_attempt_that_failed_say_so(stage: Stage) -> None:
    first, _ = await stage.running()
    first.say(control.Failed("KeyError", "internal", "'x'", "…", VERTEX, 0, "numbers"))
    attempt = stage.master.attempt
    assert attempt is not None
    assert [task.status for task in attempt.tasks.values()] == [
        TaskStatus.FAILED,
        TaskStatus.CANCELED,
    ]


async def test_a_stop_that_a_cancel_overtakes_is_over_and_says_where_its_savepoint_is(
    stage: Stage,
) -> None:
    workers = await stage.running()
    trigger = stage.request(SnapshotKind.SAVEPOINT, AfterBarrier.STOP)
    acknowledge(workers)
    await until(lambda: bool(workers[0].of(control.Completed)))
    stage.master.cancel()
    for worker in workers:
        stage.gone(worker)
    await until(lambda: stage.status is JobStatus.CANCELED)
    status = stage.operations.status(trigger, "savepoint", JOB)
    assert status.done
    assert "stop was overtaken: the job is CANCELED; its savepoint" in str(status.failure)


async def test_a_task_manager_lost_while_the_snapshot_is_read_costs_one_attempt_not_the_job(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path)
    stage.master.start()  # has its slots; the workers are started in the next turn of the loop
    stage.fleet.on_gone(stage.task_manager)
    await until(lambda: stage.master.waiting_for is not None)
    stage.task_manager = PlayedPeer(stage.fleet, control.TaskManagerHello("tm-1", 0, 2, "h"))
    await stage.running()
    assert "lost before the worker was started" in stage.master.failures.newest_first[0].message
    stage.store.close()


async def test_a_full_disk_fails_checkpoints_with_that_reason_and_the_job_runs_on(
    stage: Stage,
) -> None:
    workers = await stage.running()
    with no_room(stage.store):
        with pytest.raises(StorageError, match=r"cannot be written: .*; make room on its disk"):
            stage.request(SnapshotKind.CHECKPOINT)
        request = SnapshotRequest("ab", SnapshotKind.CHECKPOINT)
        stage.master.request(request)
        failed = stage.master.snapshots.log.history().latest_failed
        assert "could not be recorded: store" in str(failed and failed.failure)
        assert workers[0].of(control.Trigger) == []
        for worker in workers:
            stage.gone(worker)
        await until(lambda: len(stage.started()) == 4)
    again = await stage.running(attempt=2)
    stage.request(SnapshotKind.CHECKPOINT)
    acknowledge(again)
    await until(lambda: bool(again[0].of(control.Completed)))
    (row,) = stage.store.jobs()
    assert row.status is JobStatus.RUNNING


@pytest.fixture
def stopped() -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Makes processes that are stopped: they neither work nor die when they are told to."""
    made: list[subprocess.Popen[bytes]] = []

    def make() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        made.append(process)
        process.send_signal(signal.SIGSTOP)
        return process

    yield make
    for process in made:
        process.kill()
        process.communicate()


async def test_a_worker_that_never_speaks_is_ended(
    stage: Stage, stopped: Callable[[], subprocess.Popen[bytes]]
) -> None:
    await until(lambda: len(stage.started()) == 2)
    spec, worker = stage.started()[0], stopped()
    stage.task_manager.say(control.WorkerStarted(spec.attempt_id, spec.slot, worker.pid))
    now = monotonic()
    stage.fleet.end_silent(now + START_SILENCE_S - 1, late=0)
    await asyncio.sleep(0)
    assert worker.poll() is None
    stage.fleet.end_silent(now + START_SILENCE_S + 1, late=0)
    await until(lambda: worker.poll() == -signal.SIGKILL)


async def test_a_task_manager_past_its_heartbeat_is_lost_and_its_workers_never_write_again(
    tmp_path: Path, stopped: Callable[[], subprocess.Popen[bytes]]
) -> None:
    stage = Stage(tmp_path)
    stage.fleet.on_gone(stage.task_manager)
    manager, worker = stopped(), stopped()
    hello = control.TaskManagerHello("tm-1", manager.pid, 2, "h")
    stage.task_manager = PlayedPeer(stage.fleet, hello)
    assert stage.task_manager.of(control.Welcome) == [control.Welcome(heartbeat_ms=1_000)]
    stage.master.start()
    for peer in await stage.running():
        spec = control.WorkerStarted(peer.hello.attempt_id, peer.hello.slot, worker.pid)
        stage.task_manager.say(spec)

    now = monotonic()
    stage.fleet.end_silent(now + 10.5, late=1)  # we were asleep ourselves for a second
    assert stage.fleet.task_managers["tm-1"].doomed is None
    stage.fleet.end_silent(now + 11.5, late=0)
    await until(lambda: manager.poll() == -signal.SIGKILL)
    assert stage.status is JobStatus.RUNNING
    stage.fleet.on_gone(stage.task_manager)
    await until(lambda: stage.master.waiting_for is not None)
    assert worker.poll() == -signal.SIGKILL
    (cause,) = {failure.message for failure in stage.master.failures.newest_first}
    assert cause == "task manager tm-1 lost: it was silent for 10 s"
    stage.store.close()


async def test_a_checkpoint_that_a_killed_job_manager_did_not_record_is_deleted(
    stage: Stage,
) -> None:
    workers = await stage.running()
    for _ in range(2):
        stage.request(SnapshotKind.CHECKPOINT)
        if not workers[0].of(control.Completed):
            acknowledge(workers)
            await until(lambda: bool(workers[0].of(control.Completed)))
    folder = stage.home / "checkpoints"
    for name in ("chk-2", "chk-999", "mine"):
        (folder / name).mkdir()

    stage.fleet = Fleet(stage.store, lambda: stage.master.on_slots())
    stage.master = stage.new_master()
    stage.master.recover()
    await until(lambda: not (folder / "chk-2").exists())
    assert sorted(path.name for path in folder.iterdir()) == ["chk-1", "chk-999", "mine"]


QUERY = StateQuery("numbers", "last", {"k": "a"})


async def test_the_worker_that_has_a_key_is_asked_for_its_value(stage: Stage) -> None:
    owner, _ = await stage.running()
    queries = StateQueries(lambda job_id: stage.master)
    asking = asyncio.create_task(queries.get(JOB, QUERY))
    await until(lambda: owner.of(control.LookUp))
    (asked,) = owner.of(control.LookUp)
    assert (asked.operator, asked.state, asked.key) == ("numbers", "last", {"k": "a"})
    rows = {"columns": [{"name": "value", "type": "Int64"}], "rows": [[7]], "truncated": False}
    owner.say(control.Found(asked.number + 1, None, "of nobody"))
    owner.say(control.Found(asked.number, rows, None))
    found = await asking
    assert (found.kind, found.rows.rows) == ("value", [[7]])


async def test_a_question_ends_with_the_worker_that_was_asked(stage: Stage) -> None:
    queries = StateQueries(lambda job_id: stage.master)
    with pytest.raises(Unavailable, match="is CREATED, not all of its tasks run; ask again"):
        await queries.get(JOB, QUERY)
    owner, other = await stage.running()
    asking = asyncio.create_task(queries.get(JOB, QUERY))
    await until(lambda: owner.of(control.LookUp))
    stage.gone(owner)
    with pytest.raises(Unavailable, match="the job restarts; ask again"):
        await asking
    with pytest.raises(Unavailable, match="is RESTARTING, not all of its tasks run; ask again"):
        await queries.get(JOB, QUERY)
    stage.gone(other)
    stage.master.cancel()
    await until(lambda: stage.status is JobStatus.CANCELED)
    with pytest.raises(Conflict, match="is CANCELED: its state is gone"):
        await queries.get(JOB, QUERY)


async def test_a_subtask_that_does_not_answer_is_told(stage: Stage) -> None:
    owner, _ = await stage.running()
    with pytest.raises(Unavailable, match="does not answer within 0 s; ask again"):
        await StateQueries(lambda job_id: stage.master, patience_s=0).get(JOB, QUERY)
    assert stage.master.attempt is not None
    assert not stage.master.attempt.questions
    owner.say(control.Found(1, None, "too late"))
