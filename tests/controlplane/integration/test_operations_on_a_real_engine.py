"""Every kind of operation, on a real engine with real processes."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from controlplane.backends.models import Cluster
from controlplane.backends.registry import client_for
from controlplane.jobs import actions
from controlplane.jobs.models import RunState
from controlplane.operations import runner
from controlplane.operations.models import Operation
from controlplane.replay.actions import abandon_replay, start_replay
from controlplane.replay.preflight import preflight
from controlplane.snapshots.actions import (
    detach_savepoint,
    import_savepoint,
    mark_savepoint,
    request_savepoint,
    verify_savepoint,
)
from controlplane.snapshots.housekeeping import keep_house
from controlplane.snapshots.inspection import compare, read_rows
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.strays import scan
from engine.testing.cluster import PATIENCE_S, LocalCluster
from on_a_real_engine import finish, succeed

pytestmark = pytest.mark.integration

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def cluster(tmp_path):
    with LocalCluster(tmp_path / "engine", task_managers=2, slots=2) as running:
        yield running


@pytest.fixture
def flights(cluster, team, alice, tmp_path, settings):
    settings.HEADWATER_SAVEPOINTS = tmp_path / "savepoints"
    embedded = Cluster.objects.create(name="embedded", url=cluster.url)
    began = (timezone.now() - timedelta(seconds=90)).isoformat()
    chosen = {
        "parallelism": 2,
        # Three are kept: so long that the newest is still there when a graph has been built.
        "checkpoint_interval_ms": 2_000,
        "arguments": ["--no-points", "--anchor", began, "--output", str(tmp_path / "output")],
    }
    file = EXAMPLES / "flights.py"
    content = file.read_bytes()
    return actions.create_job("flights", team, alice, file.name, content, chosen, cluster=embedded)


def test_the_life_of_a_job(flights, alice, tmp_path):
    # It runs.
    succeed(actions.deploy(flights, alice))
    run = flights.runs.get()
    assert run.state == RunState.RUNNING
    assert run.plan["nodes"]

    # A savepoint knows where it is.
    succeed(request_savepoint(flights, alice, "first"))
    first = Savepoint.objects.get()
    assert first.event_time.year == 2013
    assert set(first.source_positions["flights"]) == {"EWR", "JFK", "LGA"}
    assert (Path(first.location) / "_metadata").is_file()

    # Version 2 replays from it, beside the live job, into files of its own.
    v2 = (EXAMPLES / "flights_v2.py").read_bytes()
    version_2 = actions.add_version(flights, alice, "flights_v2.py", v2)
    found = preflight(first, version_2, 1)
    assert found.ok, found.refusals
    assert "daily" in {row.uid for row in found.rows}
    replay, starting = start_replay(first, version_2, alice, 1)
    succeed(starting)
    engine = client_for(flights.cluster)
    assert engine.job(starting.result["run"] and replay_run(replay).engine_job_id).is_up
    succeed(abandon_replay(replay, alice))
    assert engine.job(run.engine_job_id).is_up

    # Version 2 takes over, with the state.
    succeed(actions.upgrade(flights, alice, version_2))
    new = flights.runs.filter(purpose="live").first()
    assert (new.version, new.restored_from.origin) == (version_2, "upgrade")

    # It runs on at another parallelism, and goes back to version 1 from its last checkpoint.
    succeed(actions.rescale(flights, alice, 1))
    assert engine.job(new.engine_job_id).tasks_total < 2 * len(new.plan["nodes"])
    version_1 = flights.versions.get(number=1)
    back = succeed(actions.upgrade(flights, alice, version_1, mode="last_state"))
    assert back.result["fit"].startswith("compared with")
    assert "/chk-" in flights.runs.filter(purpose="live").first().restored_path
    succeed(actions.rescale(flights, alice, 2))

    # It stops with a savepoint, and starts again from it at another parallelism.
    stopped = succeed(actions.stop(flights, alice))
    actions.change_settings(flights, alice, {"parallelism": 1})
    savepoint = Savepoint.objects.get(pk=stopped.result["savepoint"])
    succeed(actions.deploy(flights, alice, version_2, savepoint))
    assert flights.runs.filter(purpose="live").first().parallelism == 1
    succeed(actions.cancel(flights, alice))


def test_savepoints_are_verified_imported_looked_into_and_deleted(flights, alice, tmp_path):
    succeed(actions.deploy(flights, alice))
    for label in ("first", "second", "third"):
        succeed(request_savepoint(flights, alice, label))
    first, second, third = Savepoint.objects.order_by("pk")
    succeed(actions.cancel(flights, alice))

    # One is whole; one loses bytes, and the engine names the file.
    (torn,) = sorted(Path(second.location).rglob("*.parquet"))[:1]
    torn.write_bytes(torn.read_bytes()[:-4])
    for savepoint in (first, second, third):
        succeed(verify_savepoint(savepoint, alice))
        savepoint.refresh_from_db()
    assert (first.verdict, second.verdict) == ("whole", "damaged")
    assert torn.name in second.problems[0]

    # Its rows can be read, and two be compared.
    operator = next(one for one in first.contents["operators"] if one["states"])
    rows = read_rows(first, alice, operator["uid"], operator["states"][0]["name"], {})
    assert rows.columns
    until = time.monotonic() + PATIENCE_S
    while not (found := compare(first, third, alice)).finished:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert (found.failure, bool(found.states)) == ("", True)

    # It leaves the catalogue, comes back when it is found whole, and is deleted with its files.
    detach_savepoint(first, alice)
    succeed(import_savepoint(flights, alice, first.location))
    again = Savepoint.objects.get(origin="imported")
    mark_savepoint(again, alice, at_once=True)
    keep_house(timezone.now())
    succeed(Operation.objects.get(kind="dispose"))
    again.refresh_from_db()
    assert again.status == Savepoint.Status.DELETED
    assert not Path(first.location).exists()

    # What lies there without a row is found.
    scanned = scan(flights.cluster, timezone.now())
    assert (scanned.problem, scanned.folders) == ("", 2)


def replay_run(replay):
    replay.refresh_from_db()
    return replay.run


def test_what_cannot_work_is_refused_in_one_sentence(flights, alice, tmp_path):
    broken = b"import engine as hw\nraise RuntimeError('no such column: delay')\n"
    version = actions.add_version(flights, alice, "broken.py", broken)
    failed = finish(actions.deploy(flights, alice, version))
    assert "no such column: delay" in failed.error
    assert "\n" not in failed.error
    assert flights.runs.get().state == RunState.FAILED

    folder = tmp_path / "engine" / "savepoints" / "empty"
    folder.mkdir(parents=True)
    unusable = Savepoint.objects.create(
        job=flights, origin="imported", status="completed", location=str(folder)
    )
    failed = finish(actions.deploy(flights, alice, flights.versions.get(number=1), unusable))
    assert "_metadata" in failed.error
    assert "\n" not in failed.error


def test_a_savepoint_survives_the_death_of_the_job_manager(flights, alice, cluster):
    succeed(actions.deploy(flights, alice))
    operation = request_savepoint(flights, alice)
    runner.advance(operation.pk, timezone.now)
    cluster.kill_job_manager()
    runner.advance(operation.pk, timezone.now)
    cluster.restart_job_manager()

    succeed(operation)
    assert Savepoint.objects.get().status == Savepoint.Status.COMPLETED
