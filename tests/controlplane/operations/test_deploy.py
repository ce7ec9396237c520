"""Deploying a job."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User

from controlplane.access.errors import Refused
from controlplane.access.models import Membership, Role
from controlplane.audit.models import AuditEntry
from controlplane.backends.errors import EngineAway, EngineRefused
from controlplane.jobs import actions
from controlplane.jobs.models import Job, Run, RunState
from controlplane.operations.models import Operation
from controlplane.replay.actions import start_replay
from controlplane.snapshots import actions as snapshots
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.usable import usable
from people import JOB_FILE


def test_a_deployed_job_runs_and_the_operation_says_so(flights, alice, engine, drive):
    operation = drive(actions.deploy(flights, alice))

    run = flights.runs.get()
    assert (operation.state, operation.error) == (Operation.State.SUCCEEDED, "")
    assert operation.text == "flights version 1 runs, started from nothing"
    assert operation.run == run
    assert run.state == RunState.RUNNING
    assert run.plan["nodes"]
    assert engine.jobs[run.engine_job_id].status.name == "flights"
    flights.refresh_from_db()
    assert flights.desired_state == Job.Desired.RUNNING


def test_settings_reach_the_engine(flights, alice, engine, drive):
    changed = {"parallelism": 2, "checkpoint_interval_ms": 250, "arguments": ["--speed", "2"]}
    drive(actions.deploy(actions.change_settings(flights, alice, changed), alice))

    (job,) = engine.jobs.values()
    assert job.request.parallelism == 2
    assert job.request.arguments == ("--speed", "2")
    assert job.request.settings["execution.checkpointing.interval"] == "250ms"


def test_a_deployment_is_audited_with_its_actor(flights, alice):
    actions.deploy(flights, alice)

    entry = AuditEntry.objects.get(action="deploy.request")
    assert (entry.actor, entry.job, entry.target) == (alice, flights, "flights")


def test_the_same_key_is_the_same_operation(flights, alice):
    first = actions.deploy(flights, alice, idempotency_key="click")
    again = actions.deploy(flights, alice, idempotency_key="click")

    assert first == again
    assert Operation.objects.count() == 1


def test_a_key_of_another_operation_is_refused(running, alice):
    snapshots.request_savepoint(running, alice, idempotency_key="click")

    with pytest.raises(Refused, match="used for another operation"):
        actions.stop(running, alice, idempotency_key="click")


@pytest.mark.parametrize("key", ["click", "k" * 100])
def test_a_key_of_somebody_else_is_another_key(key, flights, team, lab, alice):
    boss = User.objects.create_user("boss")
    Membership.objects.create(user=boss, team=team, role=Role.ADMIN)
    other = actions.create_job("clicks", team, alice, "clicks.py", JOB_FILE, cluster=lab)
    first = actions.deploy(flights, alice, idempotency_key=key)
    second = actions.deploy(other, boss, idempotency_key=key)
    assert first.job == flights
    assert second.job == other
    assert actions.deploy(other, boss, idempotency_key=key) == second


def test_a_second_operation_waits_its_turn(flights, alice):
    actions.deploy(flights, alice)

    with pytest.raises(Refused, match="flights is busy: deploy is under way") as refused:
        actions.deploy(flights, alice)
    assert refused.value.status == 409


def test_a_running_job_is_not_deployed_again(running, alice):
    with pytest.raises(Refused, match="has a run already"):
        actions.deploy(running, alice)


def test_a_job_that_fails_to_start_is_reported_with_the_engines_reason(
    flights, alice, engine, drive
):
    engine.fail("start", EngineRefused("column delay is missing: the source has carrier, origin"))
    operation = drive(actions.deploy(flights, alice))

    run = flights.runs.get()
    assert operation.state == Operation.State.FAILED
    assert operation.error == "column delay is missing: the source has carrier, origin"
    assert (run.state, run.failure) == (RunState.FAILED, operation.error)
    flights.refresh_from_db()
    assert flights.desired_state == Job.Desired.STOPPED


def test_a_job_that_dies_while_it_starts_is_reported(flights, alice, engine, drive):
    def crash(point: str) -> None:
        for engine_job_id in engine.jobs:
            engine.crash_job(engine_job_id, "no module named flightdata")

    operation = drive(actions.deploy(flights, alice), crash)

    assert operation.error == "job flights did not start: no module named flightdata"


def test_a_job_that_restarts_over_and_over_says_why(flights, alice, engine, drive):
    def spoil(point: str) -> None:
        for engine_job_id in engine.jobs:
            engine.keep_restarting(engine_job_id, "snapshot file slices-0.parquet is altered")

    operation = drive(actions.deploy(flights, alice), spoil)

    assert operation.error == (
        "gave up after 120 s: job flights is RESTARTING "
        "(snapshot file slices-0.parquet is altered), 0 of 2 tasks run"
    )


def test_an_engine_that_is_away_for_a_while_is_asked_again(flights, alice, engine, drive):
    for _ in range(3):
        engine.fail("start", EngineAway("engine at fake://lab cannot be reached"))

    assert drive(actions.deploy(flights, alice)).state == Operation.State.SUCCEEDED


def test_an_engine_that_stays_away_fails_the_deployment(flights, alice, engine, drive):
    engine.away = True
    operation = drive(actions.deploy(flights, alice))

    assert operation.error == "gave up after 60 s: the engine does not answer; asking again"
    assert not flights.runs.exists()
    assert drive(_after(engine, flights, alice)).state == Operation.State.SUCCEEDED


def _after(engine, flights, alice):
    engine.away = False
    return actions.deploy(flights, alice)


def test_a_lost_answer_starts_no_second_job(flights, alice, engine, drive):
    engine.drop_answer("start")
    operation = drive(actions.deploy(flights, alice))

    assert operation.state == Operation.State.SUCCEEDED
    assert len(engine.jobs) == 1


def test_a_job_without_slots_says_what_it_waits_for_and_may_still_come_up(
    flights, alice, engine, drive
):
    engine.slots = 0
    operation = drive(actions.deploy(flights, alice))

    run = flights.runs.get()
    assert operation.error == "gave up after 120 s: job flights waits for 1 slots, 0 free"
    assert run.state == RunState.INITIALIZING
    flights.refresh_from_db()
    assert flights.desired_state == Job.Desired.RUNNING


def test_a_job_that_requires_state_never_starts_empty_again(running, alice, drive):
    actions.change_settings(running, alice, {"require_state": True})
    stopped = drive(actions.stop(running, alice))

    with pytest.raises(Refused, match="requires state, so it never starts empty"):
        actions.deploy(running, alice)
    savepoint = Savepoint.objects.get(pk=stopped.result["savepoint"])
    assert drive(actions.deploy(running, alice, savepoint=savepoint)).error == ""


def test_a_run_from_a_savepoint_knows_where_it_came_from(running, alice, engine, drive):
    stopped = drive(actions.stop(running, alice))
    savepoint = Savepoint.objects.get(pk=stopped.result["savepoint"])
    operation = drive(actions.deploy(running, alice, savepoint=savepoint))

    run = Run.objects.get(pk=operation.result["run"])
    assert (run.restored_from, run.restored_path) == (savepoint, savepoint.location)
    assert engine.jobs[run.engine_job_id].request.savepoint_path == savepoint.location
    assert operation.text == f"flights version 1 runs, started from savepoint {savepoint.pk}"


def test_a_failed_savepoint_cannot_be_started_from(running, alice, drive):
    drive(actions.stop(running, alice))
    broken = Savepoint.objects.create(job=running, origin="manual", status="failed")

    with pytest.raises(Refused, match="cannot be used: it is failed"):
        actions.deploy(running, alice, savepoint=broken)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"verdict": "damaged", "problems": ["part-0 is torn"]},
            "its verification failed.*: part-0 is torn; choose another",
        ),
        ({"verdict": "unreadable"}, "its verification failed: cannot be read; choose another"),
        ({"missing_since": datetime(2026, 11, 3, 4, 5, tzinfo=UTC)}, "gone since 03 Nov 04:05 UTC"),
    ],
)
def test_a_savepoint_that_cannot_be_read_starts_upgrades_and_replays_nothing(
    fields, sentence, running, alice, drive
):
    bad = Savepoint.objects.create(job=running, origin="manual", status="completed", **fields)
    version = running.versions.get()
    with pytest.raises(Refused, match=sentence):
        actions.upgrade(running, alice, version, savepoint=bad)
    with pytest.raises(Refused, match=sentence):
        start_replay(bad, version, alice, 1)
    drive(actions.stop(running, alice))
    with pytest.raises(Refused, match=sentence):
        actions.deploy(running, alice, savepoint=bad)
    assert bad not in usable(running.savepoints.all())


def test_a_viewer_and_a_stranger_cannot_deploy(flights, bob, mallory):
    for person in (bob, mallory):
        with pytest.raises(Refused, match="needs the operator role") as refused:
            actions.deploy(flights, person)
        assert refused.value.status == 403
    assert not Operation.objects.exists()
