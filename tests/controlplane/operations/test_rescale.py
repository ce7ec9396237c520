"""Running a job on at another parallelism."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.jobs import actions
from controlplane.jobs.models import RunState
from controlplane.operations import runner
from controlplane.operations.models import Operation
from controlplane.snapshots.models import Savepoint


def test_an_engine_that_can_does_it_in_place(running, alice, drive, engine):
    operation = drive(actions.rescale(running, alice, 2))

    run = running.runs.get()
    running.refresh_from_db()
    assert (operation.state, operation.text) == ("succeeded", "flights runs at parallelism 2")
    assert engine.jobs[run.engine_job_id].request.parallelism == 2
    assert (run.parallelism, running.settings["parallelism"]) == (2, 2)
    assert run.settings["parallelism"] == 2
    assert not Savepoint.objects.exists()


def test_an_engine_that_cannot_gets_the_same_version_again(running, alice, drive, engine):
    engine.rescales = False
    operation = drive(actions.rescale(running, alice, 2))

    new, old = running.runs.all()
    running.refresh_from_db()
    assert operation.text == "flights runs at parallelism 2"
    assert (old.state, new.state, new.parallelism) == (RunState.FINISHED, RunState.RUNNING, 2)
    assert new.restored_from == Savepoint.objects.get()
    assert running.settings["parallelism"] == 2


def test_a_rescale_that_fails_leaves_the_job_as_it_was(running, alice, drive, engine):
    operation = actions.rescale(running, alice, 2)

    def fail_it(point):
        engine.fail_rescales("needs 2 slots, 1 is free")

    operation = drive(operation, fail_it)
    run = running.runs.get()
    running.refresh_from_db()
    assert operation.error == "flights runs on at parallelism 1: needs 2 slots, 1 is free"
    assert (run.state, run.parallelism, running.settings["parallelism"]) == ("RUNNING", 1, 1)


def test_one_that_the_engine_forgot_is_asked_for_again(running, alice, drive, engine, clock):
    operation = actions.rescale(running, alice, 2)
    runner.advance(operation.pk, clock)
    engine.forget_triggers()

    assert drive(operation).state == Operation.State.SUCCEEDED
    assert engine.calls.count("rescale") == 2


def test_the_present_parallelism_is_refused(running, alice):
    with pytest.raises(Refused, match="runs at parallelism 1 already"):
        actions.rescale(running, alice, 1)
    with pytest.raises(Refused, match="parallelism must be a whole number from 1 to 128: got 0"):
        actions.rescale(running, alice, 0)
