"""What an upgrade finds out before it stops anything, and how the state gets to the new version."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.jobs import actions
from controlplane.jobs.models import RunState
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Checkpoint, Savepoint

MISFIT = "state panes of daily holds sum: int64, the job wants float64: keep the type"


@pytest.fixture
def version_2(running, alice):
    return actions.add_version(running, alice, "flights_v2.py", b"import engine as hw\n")


def checkpointed(run):
    """It completed a checkpoint, as the collector wrote it down."""
    return Checkpoint.objects.create(
        run=run,
        engine_checkpoint_id=1,
        status="completed",
        trigger_at=timezone.now() + timedelta(seconds=1),
        external_path=f"/checkpoints/{run.engine_job_id}/chk-1",
    )


def test_a_version_that_does_not_take_over_the_state_is_refused_before_anything_stops(
    running, alice, version_2, drive, engine
):
    engine.refuses_restore = MISFIT
    operation = drive(actions.upgrade(running, alice, version_2))

    assert (operation.state, operation.step) == (Operation.State.FAILED, "fit")
    assert operation.error == MISFIT
    assert running.runs.get().state == RunState.RUNNING
    assert "stop" not in engine.calls


def test_a_savepoint_of_the_run_is_compared_rather_than_a_checkpoint_that_may_go(
    running, alice, version_2, drive
):
    drive(request_savepoint(running, alice))
    location = Savepoint.objects.get().location
    operation = drive(actions.upgrade(running, alice, version_2))

    assert operation.result["fit"].startswith(f"compared with {location}:")


def test_a_checkpoint_that_was_replaced_meanwhile_is_not_taken_for_a_misfit(
    running, alice, version_2, drive, engine
):
    job_id = running.runs.get().engine_job_id
    number = iter(range(2, 99))

    def replace_it(point):
        if engine.calls[-1] == "newest_snapshot":
            engine.complete_checkpoint(job_id, next(number))

    operation = drive(actions.upgrade(running, alice, version_2), replace_it)
    assert operation.state == Operation.State.SUCCEEDED, operation.error


def test_a_chosen_savepoint_that_is_gone_is_found_before_anything_stops(
    running, alice, version_2, drive, engine
):
    drive(request_savepoint(running, alice))
    engine.savepoints.clear()
    chosen = Savepoint.objects.get()
    operation = drive(actions.upgrade(running, alice, version_2, savepoint=chosen))

    assert "snapshot is not there" in operation.error
    assert running.runs.get().state == RunState.RUNNING


@pytest.mark.parametrize("lacks", ["compares", "checkpoints"])
def test_what_cannot_be_compared_is_said(running, alice, version_2, drive, engine, lacks):
    setattr(engine, lacks, {} if lacks == "checkpoints" else False)
    operation = drive(actions.upgrade(running, alice, version_2))

    assert operation.state == Operation.State.SUCCEEDED
    assert operation.result["fit"].startswith("not compared: ")


def test_a_savepoint_of_another_job_is_not_there(running, alice, team, version_2):
    other = actions.create_job("other", team, alice, "other.py", b"import engine\n")
    foreign = Savepoint.objects.create(job=other, origin="manual", status="completed")
    with pytest.raises(Refused, match=f"no savepoint {foreign.pk} of flights") as refused:
        actions.upgrade(running, alice, version_2, savepoint=foreign)
    assert refused.value.status == 404


def test_last_state_goes_on_from_the_last_checkpoint_though_no_task_runs(
    running, alice, version_2, drive, engine
):
    old = running.runs.get()
    engine.keep_restarting(old.engine_job_id, "disk is full")
    operation = drive(actions.upgrade(running, alice, version_2, mode="last_state"))

    new = running.runs.first()
    assert operation.state == Operation.State.SUCCEEDED, operation.error
    assert new.restored_path == f"/checkpoints/{old.engine_job_id}/chk-1"
    assert operation.text == "flights version 2 runs, started from checkpoint chk-1"
    assert not Savepoint.objects.exists()


def test_last_state_of_an_engine_that_forgot_the_job_is_what_the_collector_saw(
    running, alice, version_2, drive, engine
):
    old = running.runs.get()
    path = checkpointed(old).external_path

    def forget(point):
        if "cancel" in engine.calls:
            engine.jobs.pop(old.engine_job_id, None)

    operation = drive(actions.upgrade(running, alice, version_2, mode="last_state"), forget)
    assert operation.state == Operation.State.SUCCEEDED, operation.error
    assert running.runs.first().restored_path == path


def test_stateless_says_what_is_lost_and_asks_for_consent(running, alice, version_2, drive):
    with pytest.raises(Refused, match=r"loses what every operator of run .* has gathered") as no:
        actions.upgrade(running, alice, version_2, mode="stateless")
    assert (no.value.status, no.value.code) == (409, "consent")

    drive(actions.upgrade(running, alice, version_2, mode="stateless", consent=True))
    assert running.runs.first().restored_path == ""


def test_stateless_goes_back_to_the_state_that_it_left(running, alice, version_2, drive, engine):
    old = running.runs.get()
    engine.refuses_artifact = "v2", "no such module: numpyy"
    drive(actions.upgrade(running, alice, version_2, mode="stateless", consent=True))

    again = running.runs.first()
    assert (again.version, again.state) == (old.version, RunState.RUNNING)
    assert again.restored_path == f"/checkpoints/{old.engine_job_id}/chk-1"


def test_a_job_that_requires_state_never_starts_empty(running, alice, version_2):
    actions.change_settings(running, alice, {"require_state": True})
    with pytest.raises(Refused, match="requires state, so it never starts empty"):
        actions.upgrade(running, alice, version_2, mode="stateless", consent=True)


def test_an_unknown_mode_is_refused_with_the_known_ones(running, alice, version_2):
    with pytest.raises(Refused, match="use one of savepoint, last_state, stateless"):
        actions.upgrade(running, alice, version_2, mode="Stateless")


def test_the_same_version_starts_again_for_new_settings(running, alice, drive, engine):
    version = running.versions.get()
    actions.change_settings(running, alice, {"checkpoint_interval_ms": 5_000})
    operation = drive(actions.upgrade(running, alice, version))

    assert operation.state == Operation.State.SUCCEEDED, operation.error
    new = engine.jobs[running.runs.first().engine_job_id]
    assert new.request.settings["execution.checkpointing.interval"] == "5000ms"


def test_the_old_version_comes_back_with_its_old_settings(running, alice, version_2, drive, engine):
    engine.refuses_artifact = "v2", "no uid"
    actions.change_settings(running, alice, {"arguments": ["--speed", "9"]})
    drive(actions.upgrade(running, alice, version_2))

    again = engine.jobs[running.runs.first().engine_job_id]
    assert again.request.arguments == ()


def test_state_is_dropped_only_by_name(running, alice, version_2, drive, engine):
    drive(actions.upgrade(running, alice, version_2, drop=["daily/panes"]))

    new = running.runs.first()
    assert new.dropped == ["daily/panes"]
    request = engine.jobs[new.engine_job_id].request
    assert request.allow_non_restored == frozenset({"daily/panes"})


def test_a_run_keeps_why_by_whom_and_from_what_it_was_started(running, alice, version_2, drive):
    drive(actions.upgrade(running, alice, version_2, reason="no delay if cancelled"))

    new, savepoint = running.runs.first(), Savepoint.objects.get()
    assert (new.started_by, new.restored_from) == (alice, savepoint)
    assert new.reason == (
        f"started from savepoint {savepoint.pk}, for the upgrade that alice asked for: "
        "no delay if cancelled"
    )


# Rolling back.


def test_a_rollback_goes_to_the_last_version_that_was_healthy(running, alice, version_2, drive):
    checkpointed(running.runs.get())
    drive(actions.upgrade(running, alice, version_2))
    operation = drive(actions.rollback(running, alice, reason="wrong sums"))

    assert operation.state == Operation.State.SUCCEEDED, operation.error
    assert running.runs.first().version.number == 1


def test_a_version_that_restarted_after_its_last_checkpoint_was_not_healthy(
    running, alice, version_2, drive
):
    old = running.runs.get()
    late = checkpointed(old).trigger_at + timedelta(seconds=1)
    running.runs.update(restarted_at=late)
    drive(actions.upgrade(running, alice, version_2))

    with pytest.raises(Refused, match="has no other version that was healthy"):
        actions.rollback(running, alice)


def test_a_failed_job_rolls_back_to_where_it_was(running, alice, version_2, drive, engine):
    checkpointed(running.runs.get())
    drive(actions.upgrade(running, alice, version_2))
    failed = running.runs.first()
    path = checkpointed(failed).external_path
    engine.crash_job(failed.engine_job_id, "division by zero")
    running.runs.filter(pk=failed.pk).update(state=RunState.FAILED)

    operation = drive(actions.rollback(running, alice))
    new = running.runs.first()
    assert operation.state == Operation.State.SUCCEEDED, operation.error
    assert (new.version.number, new.restored_path) == (1, path)


def test_a_rollback_of_a_job_whose_tasks_do_not_run_takes_the_last_checkpoint(
    running, alice, version_2, drive, engine
):
    checkpointed(running.runs.get())
    drive(actions.upgrade(running, alice, version_2))
    restarting = running.runs.first()
    engine.keep_restarting(restarting.engine_job_id, "division by zero")
    running.runs.filter(pk=restarting.pk).update(state=RunState.RESTARTING)

    operation = actions.rollback(running, alice)
    assert operation.params["mode"] == "last_state"
    assert drive(operation).state == Operation.State.SUCCEEDED
