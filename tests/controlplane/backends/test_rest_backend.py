"""The control plane's view of an engine, over the engine's own routes."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from controlplane.backends.contract import Start
from controlplane.backends.errors import (
    EngineAway,
    EngineRefused,
    NoSnapshot,
    UnknownJob,
    UnknownTrigger,
)
from controlplane.backends.flink_looks import FlinkLooks
from controlplane.backends.rest import RestBackend, event_time
from controlplane.backends.watch import EngineWatch
from engine.rest.app import create_app
from engine.rest.client import AsyncEngineClient, EngineClient
from engine.rest.model.cluster import Artifact
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.fake_service import FakeService
from engine.testing.in_memory import InMemory

URL = "http://127.0.0.1:8081"
JOB = "0123456789abcdef0123456789abcdef"
TRIGGER = "fedcba9876543210fedcba9876543210"


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def engine(service):
    client = EngineClient(URL, transport=InMemory(create_app(service)))
    return RestBackend(client, client)


@pytest.fixture
def artifact(engine, tmp_path):
    path = tmp_path / "0a1b"
    path.write_bytes(b"import engine as hw\n")
    return engine.upload("flights.py", path)


@pytest.fixture
def started(engine, artifact):
    engine.start(
        Start(
            artifact_id=artifact,
            engine_job_id=JOB,
            parallelism=2,
            arguments=("--speed", "2"),
            settings={"pipeline.name": "flights@r-1", "headwater.sinks.shadow": "r-1"},
        )
    )
    return JOB


def test_a_job_file_that_is_gone_is_refused_by_name(engine, tmp_path):
    with pytest.raises(EngineRefused) as refused:
        engine.upload("flights.py", tmp_path / "gone")
    assert refused.value.message == (
        "job file flights.py is not readable: No such file or directory; upload it as a new version"
    )


def test_a_start_carries_everything_that_was_asked(engine, started, service):
    (request,) = service.requests

    assert request.job_id == JOB
    assert request.program.parallelism == 2
    assert request.program.arguments == ("--speed", "2")
    assert request.program.settings["headwater.sinks.shadow"] == "r-1"
    job = engine.job(JOB)
    assert (job.name, job.engine_job_id) == ("flights@r-1", JOB)
    assert job.tasks_total > 0
    assert job.plan["nodes"]


def test_a_second_start_under_the_same_id_is_refused(engine, started, artifact):
    with pytest.raises(EngineRefused):
        engine.start(Start(artifact, JOB, 1))


def test_a_savepoint_is_polled_until_its_location_is_known(engine, started, tmp_path):
    engine.trigger_savepoint(JOB, str(tmp_path), TRIGGER)
    engine.trigger_savepoint(JOB, str(tmp_path), TRIGGER)

    assert not engine.savepoint_status(JOB, TRIGGER).done
    status = engine.savepoint_status(JOB, TRIGGER)
    assert status.done
    assert status.location.startswith(str(tmp_path))
    assert engine.savepoint_locations(JOB) == [status.location, status.location]


def test_a_savepoint_that_fails_has_a_sentence(engine, started):
    engine.trigger_savepoint(JOB, "/unwritable", TRIGGER)
    engine.savepoint_status(JOB, TRIGGER)

    assert engine.savepoint_status(JOB, TRIGGER).failure


def test_stopping_ends_the_job(engine, started, tmp_path):
    engine.stop(JOB, str(tmp_path), TRIGGER, drain=False)
    while not engine.savepoint_status(JOB, TRIGGER).done:
        pass

    assert engine.job(JOB).state == "FINISHED"
    assert engine.job(JOB).has_ended


def test_cancelling_twice_does_no_harm(engine, started):
    engine.cancel(JOB)
    engine.cancel(JOB)

    assert engine.job(JOB).state in {"CANCELLING", "CANCELED"}


def test_a_job_that_failed_or_restarts_says_why(engine, started, service):
    assert engine.job(JOB).failure == ""
    service.fail(JOB, "row 7 cannot be parsed")
    assert "row 7 cannot be parsed" in engine.job(JOB).failure
    service.known[JOB] = replace(service.known[JOB], status=JobStatus.RESTARTING, failure=None)
    assert "row 7 cannot be parsed" in engine.job(JOB).failure


def test_what_the_engine_does_not_know_is_told_apart(engine, started):
    with pytest.raises(UnknownJob):
        engine.job("0" * 32)
    with pytest.raises(UnknownJob):
        engine.cancel("0" * 32)
    with pytest.raises(UnknownTrigger):
        engine.savepoint_status(JOB, "0" * 32)
    with pytest.raises(EngineRefused, match="does not exist"):
        engine.check("nothing_here.py", (), 1)


def test_an_engine_that_is_gone_or_behind_a_dead_gateway_is_away():
    dead = EngineClient("http://127.0.0.1:9", timeout=1)
    gateway = EngineClient(
        URL, transport=httpx.MockTransport(lambda _: httpx.Response(503, text="starting"))
    )
    for client in (dead, gateway):
        with pytest.raises(EngineAway):
            RestBackend(client, client).job(JOB)


@pytest.mark.parametrize("micros", [None, -(2**63), 2**63 - 1])
def test_a_time_that_is_no_date_is_unknown(micros):
    assert event_time(micros) is None


def test_event_times_keep_their_microseconds():
    assert event_time(1_362_096_000_000_001).isoformat() == "2013-03-01T00:00:00.000001+00:00"


async def test_one_request_for_all_jobs_shows_what_one_for_each_part_shows(service):
    started = [await start_in(service, number) for number in range(3)]
    transport = httpx.ASGITransport(create_app(service))
    at_once = await EngineWatch(URL, transport).look(started)
    client = AsyncEngineClient(URL, transport=transport)
    apart = await FlinkLooks(client, lambda: 0.0).look(started, at_once.states)
    assert sorted(at_once.jobs) == sorted(started)
    for one in apart:
        seen = at_once.jobs[one.id]
        assert seen.event_ms is not None
        # A Flink does not say where it is in event time, and which operators are sources.
        known = replace(seen, event_ms=None, newest_ms=None, pending_rows=None, vertices=())
        assert known == replace(one, vertices=())
        assert [vertex.busy for vertex in seen.vertices] == [v.busy for v in one.vertices]


async def start_in(service, number):
    artifact = Artifact(f"{number}_flights.py", "flights.py", 0, 1)
    service.uploaded[artifact.id] = artifact
    return await service.run(RunRequest(Program(artifact.id), job_id=f"{number:032x}"))


@pytest.fixture
def location(engine, started, tmp_path):
    """A savepoint that the engine knows."""
    engine.trigger_savepoint(JOB, str(tmp_path), TRIGGER)
    while not (status := engine.savepoint_status(JOB, TRIGGER)).done:
        pass
    return status.location


def test_a_manifest_tells_whom_it_is_of_and_what_is_in_it(engine, location):
    found = engine.savepoint(location)
    assert found.contents["job_name"] == found.job_name
    states = [state for one in found.contents["operators"] for state in one["states"]]
    assert states
    assert set(states[0]) == {"name", "kind", "rows", "size_bytes", "keys", "values"}
    assert found.created_ms > 0


def test_a_savepoint_is_verified_and_compared_under_our_id(engine, location):
    engine.verify(location, TRIGGER)
    assert not engine.verification(TRIGGER).finished
    verified = engine.verification(TRIGGER)
    assert (verified.finished, verified.problems, verified.failure) == (True, (), "")

    engine.compare(location, location, "1" * 32)
    assert not engine.comparison("1" * 32).finished
    compared = engine.comparison("1" * 32)
    assert all(one.changed == 0 and one.reason == "" for one in compared.states)


def test_rows_of_a_state_are_read(engine, location):
    operator = next(
        one for one in engine.savepoint(location).contents["operators"] if one["states"]
    )
    rows = engine.read_state(location, operator["uid"], operator["states"][0]["name"], {}, 5)
    assert set(operator["states"][0]["keys"]) <= set(rows.columns)


def deleted(engine, location) -> str:
    """Why it was not deleted; empty when it was."""
    trigger_id = engine.dispose(location)
    while (failure := engine.disposal(trigger_id)) is None:
        pass
    return failure


def test_a_deleted_savepoint_is_gone_and_that_is_told_apart(engine, location):
    assert deleted(engine, location) == ""
    for look in (engine.savepoint, lambda place: engine.verify(place, TRIGGER)):
        with pytest.raises(NoSnapshot, match="snapshot is not there"):
            look(location)
    assert "snapshot is not there" in deleted(engine, location)
    for ask in (engine.verification, engine.comparison, engine.disposal):
        with pytest.raises(UnknownTrigger):
            ask("9" * 32)
