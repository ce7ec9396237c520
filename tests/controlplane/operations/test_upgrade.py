"""Upgrading a running job to another version, and going back when that does not come up."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.errors import EngineRefused
from controlplane.jobs import actions
from controlplane.jobs.models import Job, RunState
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint

JOB_FILE = b"import engine as hw\n"


@pytest.fixture
def version_2(running, alice):
    return actions.add_version(running, alice, "flights_v2.py", JOB_FILE, "no delay if cancelled")


def test_the_new_version_starts_where_the_old_one_stopped(running, alice, version_2, drive, engine):
    operation = drive(actions.upgrade(running, alice, version_2))

    new, old = running.runs.all()
    savepoint = Savepoint.objects.get()
    assert operation.text == f"flights version 2 runs, started from savepoint {savepoint.pk}"
    assert (old.state, new.state) == (RunState.FINISHED, RunState.RUNNING)
    assert (new.version, new.restored_from) == (version_2, savepoint)
    assert savepoint.origin == Savepoint.Origin.UPGRADE


def test_it_can_start_from_an_older_savepoint(running, alice, version_2, drive):
    drive(request_savepoint(running, alice, "older"))
    older = Savepoint.objects.get()
    drive(actions.upgrade(running, alice, version_2, savepoint=older))

    assert running.runs.first().restored_from == older
    assert Savepoint.objects.filter(origin=Savepoint.Origin.UPGRADE).count() == 1


def test_a_version_that_builds_no_graph_is_found_before_anything_is_stopped(
    running, alice, version_2, drive, engine
):
    engine.fail("check", EngineRefused("operator daily has no uid: pass uid="))
    operation = drive(actions.upgrade(running, alice, version_2))

    assert operation.error == "operator daily has no uid: pass uid="
    assert running.runs.get().state == RunState.RUNNING
    assert "stop" not in engine.calls
    assert Savepoint.objects.get().status == Savepoint.Status.FAILED


def test_a_version_that_does_not_fit_the_state_gives_way_to_the_old_one(
    running, alice, version_2, drive, engine
):
    engine.refuses_artifact = "v2", "state panes has no uid"
    operation = drive(actions.upgrade(running, alice, version_2))

    again, failed, first = running.runs.all()
    savepoint = Savepoint.objects.get()
    assert (operation.state, operation.error) == (
        Operation.State.FAILED,
        "state panes has no uid",
    )
    assert (first.state, failed.state, again.state) == (
        RunState.FINISHED,
        RunState.FAILED,
        RunState.RUNNING,
    )
    assert failed.failure == "state panes has no uid"
    assert (again.version, again.restored_from) == (first.version, savepoint)
    running.refresh_from_db()
    assert running.desired_state == Job.Desired.RUNNING


def test_a_version_that_dies_at_once_is_withdrawn_before_the_old_one_runs_again(
    running, alice, version_2, drive, engine
):
    def crash_new_code(point: str) -> None:
        for engine_job_id, job in engine.jobs.items():
            if "v2" in job.request.artifact_id:
                engine.crash_job(engine_job_id, "division by zero in operator daily")

    operation = drive(actions.upgrade(running, alice, version_2), crash_new_code)

    assert operation.error == "job flights did not start: division by zero in operator daily"
    running_now = [job for job in engine.jobs.values() if job.status.state == "RUNNING"]
    assert [job.request.artifact_id.endswith("_flights.py") for job in running_now] == [True]


def test_upgrading_to_the_running_version_is_refused(running, alice):
    with pytest.raises(Refused, match="runs version 1 already"):
        actions.upgrade(running, alice, running.versions.get())
