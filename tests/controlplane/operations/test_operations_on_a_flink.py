"""Whole operations against a scripted Apache Flink, with a fault at each request that they make.

fault                                    the operation
404 of a trigger, statistics empty       finds the savepoint in its folder, or asks again
409, 500 to a request                    fails with the engine's sentence; the job runs on
slow, hangs up before or after           asks again, and nothing is done twice
"""

from __future__ import annotations

import pytest

from controlplane.backends import rest
from controlplane.backends.models import Cluster
from controlplane.jobs import actions as jobs
from controlplane.jobs.models import Job, RunState
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint
from engine.rest.calls import program_calls
from people import jar_file
from scripted_flink import HangUp, Says, Slow, running_flink

IMPATIENT_S = 0.2
LOST = [HangUp(), HangUp(done=True), Slow(30), Says(503, "no leader yet")]


@pytest.fixture
def flink(monkeypatch):
    monkeypatch.setattr(rest, "QUICK_S", IMPATIENT_S)
    monkeypatch.setattr(rest, "BUILD_S", IMPATIENT_S)
    monkeypatch.setattr(program_calls, "BUILD_S", IMPATIENT_S)
    with running_flink() as cluster:
        yield cluster


@pytest.fixture
def flights(flink, team, alice, tmp_path, settings):
    """Never started, on the Flink cluster."""
    settings.HEADWATER_SAVEPOINTS = tmp_path / "savepoints"
    cluster = Cluster.objects.create(name="flink", url=flink.url, kind=Cluster.Kind.FLINK)
    return jobs.create_job("flights", team, alice, "flights.jar", jar_file(), cluster=cluster)


@pytest.fixture
def running(flights, alice, drive):
    assert drive(jobs.deploy(flights, alice)).error == ""
    return flights


def during(step, action):
    """A probe that does something once, before that step asks."""
    done = []

    def probe(point):
        now = Operation.objects.exclude(state__in=["succeeded", "failed"]).first()
        if point == "act" and now and now.step == step and not done:
            done.append(action())

    return probe


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("request_", [("POST", "upload"), ("POST", "plan"), ("POST", "run")])
def test_a_deployment_starts_one_job_whatever_becomes_of_an_answer(
    request_, fault, flights, flink, alice, drive
):
    flink.next(*request_, fault)
    assert drive(jobs.deploy(flights, alice)).error == ""
    (job,) = flink.jobs.values()
    assert flights.runs.get().engine_job_id == job.id


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("request_", [("POST", "/savepoints"), ("GET", "/savepoints/")])
def test_a_savepoint_is_one_whatever_becomes_of_an_answer(
    request_, fault, running, flink, alice, drive
):
    flink.next(*request_, fault)
    assert drive(request_savepoint(running, alice)).error == ""
    (folder,) = {trigger.location for trigger in flink.triggers.values()}
    assert Savepoint.objects.get().location.endswith(folder)


@pytest.mark.parametrize("stops", [False, True])
def test_a_savepoint_of_an_earlier_job_manager_is_found_in_its_folder(
    stops, running, flink, alice, drive
):
    operation = jobs.stop(running, alice) if stops else request_savepoint(running, alice)
    restart = during("savepoint", flink.restart)
    assert drive(operation, restart).error == ""
    assert flink.triggers == {}
    assert Savepoint.objects.get().status == Savepoint.Status.COMPLETED
    assert running.runs.get().is_terminal == stops


def test_a_savepoint_that_a_job_manager_took_with_it_is_asked_for_again(
    running, flink, alice, drive
):
    operation = drive(request_savepoint(running, alice), during("savepoint", flink.triggers.clear))
    assert operation.error == ""
    assert len(flink.triggers) == 1


@pytest.mark.parametrize("fault", [Says(409, "the job is being rescaled"), Says(500, "disk")])
@pytest.mark.parametrize("stops", [False, True])
def test_a_refusal_ends_the_operation_with_its_sentence_and_the_job_runs_on(
    stops, fault, running, flink, alice, drive
):
    flink.next("POST", "stop" if stops else "savepoints", fault)
    operation = drive(jobs.stop(running, alice) if stops else request_savepoint(running, alice))
    running.refresh_from_db()
    assert operation.error == fault.sentence
    assert Savepoint.objects.get().status == Savepoint.Status.FAILED
    assert running.runs.get().state == RunState.RUNNING
    assert running.desired_state == Job.Desired.RUNNING


def test_a_savepoint_that_fails_three_times_is_given_up(running, flink, alice, drive):
    def spoil(point):
        flink.fail_savepoints("java.io.IOException: No space left on device\n\tat java.base")

    operation = drive(request_savepoint(running, alice), spoil)
    assert operation.error == "the savepoint of flights failed: No space left on device"
    assert len(flink.triggers) == 3


@pytest.mark.parametrize("fault", LOST)
def test_a_stop_ends_the_job_once_whatever_becomes_of_an_answer(
    fault, running, flink, alice, drive
):
    flink.next("POST", "/stop", fault)
    assert drive(jobs.stop(running, alice)).error == ""
    assert running.runs.get().state == RunState.FINISHED
    assert len({trigger.location for trigger in flink.triggers.values()}) == 1


def test_a_cancel_of_a_job_that_has_finished_meanwhile_is_no_failure(running, flink, alice, drive):
    next(iter(flink.jobs.values())).state = "FINISHED"
    assert drive(jobs.cancel(running, alice)).error == ""
    assert running.runs.get().state == RunState.FINISHED


@pytest.mark.parametrize(
    ("request_", "fault"),
    [
        (("POST", "/stop"), HangUp(done=True)),
        (("GET", "/savepoints/"), Says(404, "There is no savepoint operation")),
        (("POST", "run"), HangUp(done=True)),
        (("POST", "run"), Slow(30)),
    ],
)
def test_an_upgrade_ends_with_one_job_of_the_new_version(
    request_, fault, running, flink, alice, drive
):
    version = jobs.add_version(running, alice, "flights_v2.jar", jar_file("Flights2"))
    flink.next(*request_, fault)
    assert drive(jobs.upgrade(running, alice, version)).error == ""
    assert sorted(job.state for job in flink.jobs.values()) == ["FINISHED", "RUNNING"]
    new = running.runs.get(version=version)
    assert new.restored_from.location in flink.jobs[new.engine_job_id].request["savepointPath"]


def test_an_upgrade_that_the_cluster_refuses_goes_back_to_the_old_version(
    running, flink, alice, drive
):
    version = jobs.add_version(running, alice, "flights_v2.jar", jar_file("Flights2"))
    flink.next("POST", "run", Says(500, "no uid in operator daily"))
    operation = drive(jobs.upgrade(running, alice, version))
    assert operation.error == "no uid in operator daily"
    old = running.runs.get(state=RunState.RUNNING)
    assert (old.version.number, old.restored_from.origin) == (1, Savepoint.Origin.UPGRADE)


def test_a_flink_that_is_away_for_a_while_costs_only_time(running, flink, alice, drive):
    for part in ("/savepoints", "/savepoints/"):
        flink.next("POST" if part == "/savepoints" else "GET", part, *[HangUp()] * 4)
    assert drive(request_savepoint(running, alice)).error == ""
