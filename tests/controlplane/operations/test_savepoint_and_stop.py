"""Taking savepoints, stopping and cancelling."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.errors import EngineRefused
from controlplane.jobs import actions as jobs
from controlplane.jobs.models import Job, RunState
from controlplane.operations import runner
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Checkpoint, Savepoint


def test_a_savepoint_enters_the_catalogue_with_its_position(running, alice, engine, drive):
    engine.event_time = datetime(2013, 3, 14, 15, 9, 26, tzinfo=UTC)
    operation = drive(request_savepoint(running, alice, label=" before the storm "))

    savepoint = Savepoint.objects.get()
    assert savepoint.status == Savepoint.Status.COMPLETED
    assert (savepoint.label, savepoint.origin) == ("before the storm", Savepoint.Origin.MANUAL)
    assert savepoint.event_time == engine.event_time
    assert savepoint.size_bytes == 4096
    assert savepoint.source_positions["flights"]["EWR"]["position"] == 100
    assert savepoint.location in engine.savepoints
    assert savepoint.created_by == alice
    assert savepoint.version.number == 1
    assert operation.text == (
        f"savepoint {savepoint.pk} of flights is complete at event time 2013-03-14 15:09:26 UTC"
    )


def test_the_catalogue_shows_a_savepoint_from_the_moment_it_is_asked_for(running, alice):
    operation = request_savepoint(running, alice)

    savepoint = Savepoint.objects.get(pk=operation.result["savepoint"])
    assert savepoint.status == Savepoint.Status.CREATING


def test_a_savepoint_on_its_way_says_how_many_subtasks_have_written(running, alice, drive):
    operation = request_savepoint(running, alice)
    Checkpoint.objects.create(
        run=running.runs.get(),
        engine_checkpoint_id=7,
        kind="savepoint",
        status="in_progress",
        trigger_at=datetime(2026, 11, 30, tzinfo=UTC),
        detail={"subtasks": 188, "acknowledged": 69},
    )
    texts = []

    def note(_point: str) -> None:
        operation.refresh_from_db()
        texts.append(operation.text)

    drive(operation, note)
    assert "waits for every task to write its part: 69 of 188 have" in texts


def test_a_savepoint_that_fails_says_why_and_the_job_runs_on(running, alice, engine, drive):
    operation = request_savepoint(running, alice)
    drive(operation, lambda point: engine.fail_savepoints("disk is full: 0 bytes left"))

    operation.refresh_from_db()
    savepoint = Savepoint.objects.get()
    assert operation.error == "the savepoint of flights failed: disk is full: 0 bytes left"
    assert (savepoint.status, savepoint.failure) == (Savepoint.Status.FAILED, operation.error)
    assert running.runs.get().state == RunState.RUNNING


def test_a_savepoint_that_a_restart_spoiled_is_asked_for_again(running, alice, engine, drive):
    operation = request_savepoint(running, alice)
    spoiled = []

    def spoil_once(point: str) -> None:
        if engine.calls.count("trigger_savepoint") == 1 and not spoiled:
            engine.fail_savepoints("the job restarted before it was complete")
            spoiled.append(point)

    assert drive(operation, spoil_once).state == Operation.State.SUCCEEDED
    assert engine.calls.count("trigger_savepoint") == 2
    assert len(engine.savepoints) == 1
    told = " ".join(operation.events.values_list("text", flat=True))
    assert "the engine was asked for it again: 2 of 3" in told
    assert "forgot" not in told


def test_a_savepoint_waits_until_every_task_runs(running, alice, engine, drive):
    run = running.runs.get()
    job = engine.jobs[run.engine_job_id]
    job.status = replace(job.status, state="CREATED", tasks_running=0)
    job.looks_until_up = 2
    operation = request_savepoint(running, alice)
    texts = []

    def watch(point: str) -> None:
        operation.refresh_from_db()
        texts.append(operation.text)

    drive(operation, watch)
    assert "job flights is CREATED, 0 of 2 tasks run; a savepoint needs all of them" in texts
    assert Savepoint.objects.get().status == Savepoint.Status.COMPLETED


def test_a_savepoint_survives_a_job_manager_that_forgets_it(running, alice, engine, drive):
    operation = request_savepoint(running, alice)

    def forget(point: str) -> None:
        operation.refresh_from_db()
        if point == "act" and operation.step == "savepoint":
            engine.forget_triggers()

    drive(operation, forget)
    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED
    assert Savepoint.objects.get().location in engine.savepoints
    assert len(engine.savepoints) == 1


def test_a_job_that_does_not_run_has_no_savepoint(flights, alice):
    with pytest.raises(Refused, match="flights is not running: there is nothing to take"):
        request_savepoint(flights, alice)


def test_stopping_takes_a_savepoint_and_ends_the_run(running, alice, engine, drive):
    operation = drive(jobs.stop(running, alice))

    savepoint, run = Savepoint.objects.get(), running.runs.get()
    assert operation.text == f"flights stopped with savepoint {savepoint.pk}"
    assert savepoint.origin == Savepoint.Origin.STOP
    assert savepoint.status == Savepoint.Status.COMPLETED
    assert (run.state, run.ended_at is None) == (RunState.FINISHED, False)
    running.refresh_from_db()
    assert running.desired_state == Job.Desired.STOPPED


def test_a_stop_whose_savepoint_fails_leaves_the_job_running_and_wanted(
    running, alice, engine, drive
):
    engine.fail("stop", EngineRefused("not all tasks are running"))
    operation = drive(jobs.stop(running, alice))

    running.refresh_from_db()
    assert operation.error == "not all tasks are running"
    assert Savepoint.objects.get().status == Savepoint.Status.FAILED
    assert running.runs.get().state == RunState.RUNNING
    assert running.desired_state == Job.Desired.RUNNING


def test_a_stop_whose_answer_is_lost_is_still_one_stop(running, alice, engine, drive):
    engine.drop_answer("stop")
    operation = drive(jobs.stop(running, alice))

    assert operation.error == ""
    assert len(engine.savepoints) == 1


def test_cancelling_ends_the_run_without_a_savepoint(running, alice, engine, drive):
    operation = drive(jobs.cancel(running, alice))

    assert operation.text == "flights is cancelled"
    assert running.runs.get().state == RunState.CANCELED
    assert not engine.savepoints


def test_a_cancel_does_not_wait_for_a_savepoint_that_hangs(running, alice, engine, drive):
    engine.looks_until_done = 1_000_000
    hanging = request_savepoint(running, alice)
    operation = drive(jobs.cancel(running, alice))

    hanging.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED
    assert hanging.state == Operation.State.CANCELLED
    assert hanging.error == "ended by cancel, asked for by alice"
    assert Savepoint.objects.get().failure == hanging.error


def test_a_deployment_that_waits_for_slots_can_be_cancelled(flights, alice, engine, drive, clock):
    engine.slots = 0
    deploying = jobs.deploy(flights, alice)
    runner.advance(deploying.pk, clock)
    drive(jobs.cancel(flights, alice))

    deploying.refresh_from_db()
    run = flights.runs.get()
    assert deploying.state == Operation.State.CANCELLED
    assert run.state == RunState.CANCELED
    assert engine.jobs[run.engine_job_id].status.state == "CANCELED"
    assert runner.advance(deploying.pk, clock) is None


def test_cancelling_a_run_that_the_engine_does_not_know_frees_the_job(
    running, alice, engine, drive
):
    engine.jobs.clear()
    drive(jobs.cancel(running, alice))

    assert running.runs.get().is_terminal
    assert drive(jobs.deploy(running, alice)).state == Operation.State.SUCCEEDED


def test_a_viewer_may_neither_stop_nor_cancel_nor_save(running, bob):
    for action in (jobs.stop, jobs.cancel, request_savepoint):
        with pytest.raises(Refused, match="needs the operator role"):
            action(running, bob)
