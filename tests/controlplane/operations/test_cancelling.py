"""Cancelling an operation: it ends soon, without its result, and leaves nothing behind."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.backends.errors import EngineAway
from controlplane.jobs import actions
from controlplane.jobs.models import Job, RunState
from controlplane.operations import runner
from controlplane.operations.actions import cancel_operation
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint


def advance_to(operation, step, clock):
    """Bring it on until it is in that step."""
    while True:
        operation.refresh_from_db()
        if operation.step == step:
            return operation
        clock.advance(runner.advance(operation.pk, clock))


def test_a_start_that_waits_for_slots_is_taken_back_within_seconds(
    flights, alice, engine, drive, clock
):
    engine.slots = 0
    operation = advance_to(actions.deploy(flights, alice), "confirm", clock)
    runner.advance(operation.pk, clock)
    began = clock.now
    ended = drive(cancel_operation(operation, alice, "wrong cluster"))

    assert (ended.state, ended.error) == ("cancelled", "cancelled by alice: wrong cluster")
    assert (clock.now - began).total_seconds() < 10
    assert [job.status.state for job in engine.jobs.values()] == ["CANCELED"]
    assert flights.runs.get().state == RunState.CANCELED
    flights.refresh_from_db()
    assert flights.desired_state == Job.Desired.STOPPED


def test_a_stop_that_waits_for_tasks_leaves_the_job_running(running, alice, engine, drive, clock):
    engine.keep_restarting(running.runs.get().engine_job_id, "disk is full")
    operation = actions.stop(running, alice)
    runner.advance(operation.pk, clock)
    ended = drive(cancel_operation(operation, alice))

    assert ended.state == Operation.State.CANCELLED
    assert "stop" not in engine.calls
    assert Savepoint.objects.get().failure == "cancelled by alice"
    running.refresh_from_db()
    assert running.desired_state == Job.Desired.RUNNING


def test_what_the_engine_cannot_take_back_is_not_cancelled(running, alice, engine, clock, drive):
    engine.looks_until_done = 5
    operation = advance_to(actions.stop(running, alice), "savepoint", clock)

    with pytest.raises(Refused, match="cannot be cancelled any more: the engine was asked"):
        cancel_operation(operation, alice)
    assert drive(operation).state == Operation.State.SUCCEEDED


def test_a_savepoint_that_is_being_written_ends_at_once_and_leaves_nothing(
    running, alice, engine, drive, clock
):
    engine.looks_until_done = 5
    operation = advance_to(request_savepoint(running, alice), "savepoint", clock)
    began = clock.now
    ended = drive(cancel_operation(operation, alice))
    assert ended.state == Operation.State.CANCELLED
    assert (clock.now - began).total_seconds() < 10

    discarded = drive(Operation.objects.get(kind="discard"))
    assert discarded.text == "cancelled savepoint of flights: nothing is left"
    assert engine.savepoints == {}
    assert "dispose" in engine.calls
    assert Savepoint.objects.get().failure == "cancelled by alice"


def test_a_savepoint_that_waits_for_tasks_leaves_nothing_to_discard(
    running, alice, engine, drive, clock
):
    engine.keep_restarting(running.runs.get().engine_job_id, "disk is full")
    operation = request_savepoint(running, alice)
    runner.advance(operation.pk, clock)
    drive(cancel_operation(operation, alice))

    assert drive(Operation.objects.get(kind="discard")).state == Operation.State.SUCCEEDED
    assert "dispose" not in engine.calls


def test_an_upgrade_that_waits_for_the_new_version_goes_back_to_the_old_one(
    running, alice, engine, drive, clock
):
    version = actions.add_version(running, alice, "flights_v2.py", b"import engine\n")
    engine.looks_until_up = 5
    operation = advance_to(actions.upgrade(running, alice, version), "confirm", clock)
    ended = drive(cancel_operation(operation, alice))

    assert ended.state == Operation.State.CANCELLED
    again = running.runs.first()
    assert (again.version.number, again.state) == (1, RunState.RUNNING)


def test_who_may_not_operate_may_not_cancel(running, alice, bob):
    operation = request_savepoint(running, alice)
    with pytest.raises(Refused, match="needs the operator role"):
        cancel_operation(operation, bob)


def test_cancelling_twice_is_one_wish_and_after_the_end_none(running, alice, drive):
    operation = request_savepoint(running, alice)
    cancel_operation(operation, alice)
    cancel_operation(operation, alice)
    assert AuditEntry.objects.filter(action="operation.cancel").count() == 1

    drive(operation)
    with pytest.raises(Refused, match="has ended"):
        cancel_operation(operation, alice)


def test_each_try_is_an_event(flights, alice, engine, drive):
    for _ in range(2):
        engine.fail("upload", EngineAway("lab does not answer"))
    operation = drive(actions.deploy(flights, alice))

    tries = [str(event.text) for event in operation.events.all() if event.text.startswith("try")]
    assert tries == [
        "try 1: lab does not answer; asking again",
        "try 2: lab does not answer; asking again",
    ]


def test_an_operation_that_takes_too_long_as_a_whole_is_given_up(running, alice, engine, clock):
    operation = request_savepoint(running, alice)
    clock.advance(2 * 3600)
    while runner.advance(operation.pk, clock) is not None:
        pass
    operation.refresh_from_db()
    assert operation.error.startswith("gave up after 60 min: ")
