"""Jobs that are wanted and do not run: what is started again, from what, and what is left."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.backends.contract import SavepointSummary
from controlplane.backends.errors import EngineAway, EngineRefused
from controlplane.jobs import actions, keeping
from controlplane.jobs.models import Job, RunState, Upkeep
from controlplane.jobs.reconciler import reconcile
from controlplane.jobs.upkeep import MOST_TRIES, Ended, Found, Rest, Start, Tries, decide
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Checkpoint, Savepoint

LATER = timedelta(minutes=1)


def lose(job, engine, state=RunState.LOST, failure=""):
    """Its run ends, as the collector would write down."""
    run = job.runs.first()
    engine.jobs.pop(run.engine_job_id, None)
    job.runs.filter(pk=run.pk).update(state=state, failure=failure, ended_at=timezone.now())
    run.refresh_from_db()
    return run


def seen(run, number, engine):
    """A completed checkpoint, in the engine's storage and in the database."""
    path = engine.complete_checkpoint(run.engine_job_id, number)
    return Checkpoint.objects.create(
        run=run,
        engine_checkpoint_id=number,
        status="completed",
        trigger_at=timezone.now() + timedelta(seconds=number),
        external_path=path,
    )


def reconciled(job, drive, now=None):
    """What the reconciler began is brought to its end."""
    assert reconcile(now or timezone.now()) == 1
    return drive(Operation.objects.filter(job=job, kind="deploy").first())


def decision_of(job):
    return Upkeep.objects.get(job=job).decision


def test_a_lost_job_goes_on_from_its_newest_checkpoint(running, engine, drive):
    run = running.runs.first()
    checkpoint = seen(run, 88, engine)
    lose(running, engine)
    operation = reconciled(running, drive)

    new = running.runs.first()
    assert operation.state == Operation.State.SUCCEEDED, operation.error
    assert (new.state, new.restored_path) == (RunState.RUNNING, checkpoint.external_path)
    assert new.started_by is None
    assert new.reason == (
        f"restored from checkpoint 88 of {checkpoint.trigger_at:%d %b %H:%M:%S} UTC "
        f"in place of run {run.pk}, because the engine no longer knew it"
    )
    assert decision_of(running) == new.reason


def test_checkpoints_that_the_collector_did_not_see_are_found_beside_the_last(
    running, engine, drive
):
    run = running.runs.first()
    first = seen(run, 7, engine).external_path
    engine.checkpoints = {"a": first, "b": first[:-1] + "8", "c": first[:-1] + "9"}
    lose(running, engine)
    reconciled(running, drive)

    assert running.runs.first().restored_path.endswith("/chk-9")


def test_an_engine_that_reads_no_snapshots_is_not_taken_to_have_seen_any(running, engine, drive):
    run = running.runs.first()
    first = seen(run, 7, engine).external_path
    beside = f"{first[:-1]}8"  # a Flink cluster knows nothing of it, and does not deny it
    engine.savepoints[beside] = SavepointSummary(beside, "", None, None, None, {})
    lose(running, engine)
    reconciled(running, drive)

    assert running.runs.first().restored_path == first


def test_a_run_without_a_checkpoint_goes_on_from_what_it_was_started_from(
    running, alice, engine, drive
):
    stopped = drive(actions.stop(running, alice))
    savepoint = Savepoint.objects.get(pk=stopped.result["savepoint"])
    drive(actions.deploy(running, alice, savepoint=savepoint))
    engine.checkpoints.clear()
    lose(running, engine)
    reconciled(running, drive)

    new = running.runs.first()
    assert new.restored_from == savepoint
    assert new.reason.startswith(f"restored from savepoint {savepoint.pk} of ")


def test_what_was_agreed_to_be_lost_with_a_snapshot_holds_when_the_same_start_is_made_again(
    running, alice, engine, drive
):
    stopped = drive(actions.stop(running, alice))
    savepoint = Savepoint.objects.get(pk=stopped.result["savepoint"])
    agreed = {"drop": ["late"], "accept_missing": ["flights"]}
    drive(actions.deploy(running, alice, savepoint=savepoint, **agreed))
    engine.checkpoints.clear()
    lose(running, engine)
    reconciled(running, drive)

    asked = engine.jobs[running.runs.first().engine_job_id].request
    assert asked.allow_non_restored == frozenset({"late"})
    assert asked.accept_missing_input == frozenset({"flights"})
    seen(running.runs.first(), 3, engine)
    lose(running, engine)
    reconciled(running, drive, timezone.now() + LATER)

    assert running.runs.first().dropped == []  # the checkpoint has nothing of it any more


def test_a_checkpoint_that_cannot_be_read_leaves_the_decision_to_a_person(running, engine):
    seen(running.runs.first(), 3, engine)
    lose(running, engine)
    engine.checkpoints.clear()

    assert reconcile(timezone.now()) == 0
    assert "cannot be read (snapshot is not there" in decision_of(running)
    assert "output a second time" in decision_of(running)


def test_a_savepoint_taken_after_that_checkpoint_will_do(running, alice, engine, drive):
    run = running.runs.first()
    seen(run, 3, engine)
    drive(request_savepoint(running, alice))
    Savepoint.objects.update(completed_at=timezone.now() + timedelta(minutes=1))
    lose(running, engine)
    engine.checkpoints.clear()
    reconciled(running, drive)

    assert running.runs.first().restored_from == Savepoint.objects.get()


def test_a_job_that_requires_state_is_not_started_empty(running, alice, engine):
    actions.change_settings(running, alice, {"require_state": True})
    engine.checkpoints.clear()
    lose(running, engine)

    assert reconcile(timezone.now()) == 0
    assert "requires state and run" in decision_of(running)


def test_a_job_that_completed_nothing_starts_from_nothing(running, engine, drive):
    engine.checkpoints.clear()
    lose(running, engine)
    reconciled(running, drive)

    assert running.runs.first().reason.startswith("started from nothing in place of run")


@pytest.mark.parametrize(
    ("state", "sentence"),
    [(RunState.FINISHED, "its input has ended"), (RunState.CANCELED, "cancelled on the engine")],
)
def test_what_ended_as_it_should_is_left(running, engine, state, sentence):
    lose(running, engine, state)

    assert reconcile(timezone.now()) == 0
    assert sentence in decision_of(running)


def test_a_stopped_job_is_left_without_a_word(running, alice, drive):
    drive(actions.stop(running, alice))

    assert reconcile(timezone.now()) == 0
    assert not Upkeep.objects.exists()


def test_two_beats_start_it_once(running, engine, drive):
    lose(running, engine)
    reconcile(timezone.now())

    assert reconcile(timezone.now()) == 0
    assert Operation.objects.filter(kind="deploy", actor=None).count() == 1


def test_a_job_with_which_something_goes_on_is_left(running, alice, engine):
    actions.cancel(running, alice)
    Job.objects.update(desired_state="running")
    lose(running, engine)

    assert reconcile(timezone.now()) == 0


def test_a_job_that_the_engine_found_again_is_cancelled_before_another_starts(
    running, engine, drive
):
    run = running.runs.first()
    running.runs.filter(pk=run.pk).update(state=RunState.LOST)

    assert reconcile(timezone.now()) == 0
    assert engine.jobs[run.engine_job_id].status.state == "CANCELLING"
    assert "has run" in decision_of(running)
    reconciled(running, drive)
    up = [job for job in engine.jobs.values() if job.status.state == "RUNNING"]
    assert len(up) == 1


def test_tries_come_slower_and_end_and_a_person_can_begin_anew(running, alice, engine, drive):
    now = timezone.now()
    lose(running, engine, RunState.FAILED, "division by zero")
    for number in range(MOST_TRIES):
        engine.fail("start", EngineRefused("division by zero"))
        assert reconciled(running, drive, now).state == Operation.State.FAILED
        assert reconcile(now) == 0
        assert Upkeep.objects.get().tries == number + 1
        now += timedelta(minutes=10)
    assert reconcile(now) == 0
    assert decision_of(running).startswith("gave up after 8 starts in a row")

    keeping.resume_upkeep(running, alice)
    assert reconciled(running, drive, now).state == Operation.State.SUCCEEDED


def test_a_run_that_is_healthy_for_a_while_forgives_earlier_tries(running, engine, drive):
    lose(running, engine)
    reconciled(running, drive)
    seen(running.runs.first(), 5, engine)
    reconcile(timezone.now() + timedelta(minutes=11))

    assert Upkeep.objects.get().tries == 0


def test_an_engine_that_is_away_is_waited_for(running, engine, drive):
    lose(running, engine)
    engine.fail("job", EngineAway("nobody answers at fake://lab"))

    assert reconcile(timezone.now()) == 0
    assert decision_of(running) == "waits for the engine lab: nobody answers at fake://lab"
    reconciled(running, drive)


def test_a_person_can_pause_it(running, alice, bob, engine):
    with pytest.raises(Refused, match="needs the operator role"):
        keeping.pause_upkeep(running, bob)
    keeping.pause_upkeep(running, alice, "disk is being changed")
    lose(running, engine)

    assert reconcile(timezone.now()) == 0
    assert decision_of(running) == "not started again: paused by alice: disk is being changed"


def test_a_job_can_be_wanted_no_more(running, alice, engine):
    with pytest.raises(Refused, match="job flights runs: stop it"):
        keeping.want_no_more(running, alice)
    lose(running, engine)
    keeping.want_no_more(running, alice)

    assert reconcile(timezone.now()) == 0


def test_a_start_that_a_person_asked_for_and_that_failed_is_not_repeated(
    flights, alice, engine, drive
):
    engine.fail("start", EngineRefused("no such column"))
    drive(actions.deploy(flights, alice))

    assert reconcile(timezone.now()) == 0


def test_it_is_too_early_for_another_try_and_nothing_is_said():
    now = timezone.now()
    ended = Ended(7, RunState.LOST, "")
    tries = Tries(1, now + LATER)
    assert decide(ended, tries, Found("/chk-1"), now, require_state=False) is None
    assert isinstance(decide(ended, tries, Found("/chk-1"), now + LATER, require_state=True), Start)
    assert isinstance(decide(ended, tries, Found(), now + LATER, require_state=True), Rest)
