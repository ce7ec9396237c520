"""Moving a job that runs to another cluster."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.backends import fake
from controlplane.backends.models import Cluster
from controlplane.jobs import actions
from controlplane.jobs.moving import move_job
from controlplane.replay.actions import start_replay
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint


@pytest.fixture
def other(db, engine):
    """A cluster that sees the same folder of savepoints."""
    fake.forget("lab-2")
    fake.engine("lab-2").savepoints = engine.savepoints
    yield Cluster.objects.create(name="lab-2", url="fake://lab-2")
    fake.forget("lab-2")


@pytest.fixture
def saved(running, alice, drive):
    """The job, with a savepoint that the other cluster can be asked to read."""
    drive(request_savepoint(running, alice))
    return running


def test_it_stops_here_and_goes_on_there_from_its_savepoint(saved, other, alice, engine, drive):
    moved = drive(move_job(saved, alice, other, "more room"))

    assert moved.state == "succeeded", moved.error
    saved.refresh_from_db()
    here, there = saved.runs.order_by("pk")
    assert (saved.cluster, here.state, there.state) == (other, "FINISHED", "RUNNING")
    assert (there.cluster, there.restored_from) == (other, Savepoint.objects.latest("pk"))
    assert moved.result["text"].startswith("flights runs on lab-2, moved from lab with savepoint")
    entry = AuditEntry.objects.get(action="job.move")
    assert (entry.actor, entry.reason) == (alice, "more room")
    assert (entry.before, entry.after) == ({"cluster": "lab"}, {"cluster": "lab-2"})


def test_a_cluster_that_does_not_see_the_folder_is_refused_and_the_job_runs_on(
    saved, other, alice, engine, drive
):
    fake.engine("lab-2").savepoints = {}
    moved = drive(move_job(saved, alice, other))

    assert moved.state == "failed"
    assert moved.error.startswith("cluster lab-2 cannot read ")
    assert "which lab wrote" in moved.error
    assert moved.error.endswith("let both see the same folder at the same path")
    assert "stop" not in engine.calls
    saved.refresh_from_db()
    assert (saved.cluster.name, saved.runs.get().state) == ("lab", "RUNNING")


def test_a_job_without_a_snapshot_wants_one_first(running, other, alice, engine, drive):
    engine.checkpoints.clear()
    moved = drive(move_job(running, alice, other))

    assert moved.error == "flights has no snapshot yet: take a savepoint first"
    assert running.runs.get().state == "RUNNING"


def test_what_does_not_come_up_there_runs_here_again(saved, other, alice, engine, drive):
    fake.engine("lab-2").slots = 0
    moved = drive(move_job(saved, alice, other))

    assert moved.state == "failed"
    assert "waits for 1 slots, 0 free" in moved.error
    saved.refresh_from_db()
    states = [(run.cluster.name, run.state) for run in saved.runs.order_by("pk")]
    assert states == [("lab", "FINISHED"), ("lab-2", "FAILED"), ("lab", "RUNNING")]
    assert saved.cluster.name == "lab"
    assert not AuditEntry.objects.filter(action="job.move").exists()


def test_it_is_moved_to_a_cluster_of_its_kind_where_it_is_not(saved, other, alice):
    with pytest.raises(Refused, match="runs on lab already; choose another"):
        move_job(saved, alice, saved.cluster)
    Cluster.objects.filter(pk=other.pk).update(kind="flink")
    with pytest.raises(Refused, match="cannot read the other's savepoints"):
        move_job(saved, alice, other)


def test_nothing_is_moved_away_from_its_replay(saved, other, alice, drive):
    replay, starting = start_replay(Savepoint.objects.get(), saved.versions.get(), alice, 1)
    drive(starting)
    with pytest.raises(Refused, match=f"{replay} runs beside flights: abandon it"):
        move_job(saved, alice, other)
    drive(actions.stop(saved, alice))
    with pytest.raises(Refused, match="runs beside flights"):
        move_job(saved, alice, other)
