"""People and a job with a history, for pages that are asked for through their addresses."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client

from controlplane.backends import asked
from controlplane.jobs import actions
from controlplane.jobs.models import Run
from controlplane.metrics.store import series_store
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Checkpoint, Savepoint
from engine.rest.model.requests import Program, RunRequest
from engine.testing.fake_service import FakeService
from loopback_engine import served
from people import JOB_FILE, alice, bob, engine, lab, mallory, team

__all__ = ["alice", "bob", "engine", "lab", "mallory", "team"]

NOW = datetime(2026, 11, 30, 4, 12, tzinfo=UTC)
PLAN = {
    "plan": {
        "nodes": [
            {"id": "a1", "parallelism": 2, "description": "flights<br/>+- daily.partial<br/>"},
            {
                "id": "b2",
                "parallelism": 2,
                "description": "daily<br/>",
                "inputs": [{"id": "a1", "num": 0, "ship_strategy": "HASH"}],
            },
        ]
    }
}


@pytest.fixture(autouse=True)
def _static_root(settings):
    """WhiteNoise warns when nothing was collected."""
    settings.STATIC_ROOT.mkdir(exist_ok=True)


@pytest.fixture
def flights(team, alice, lab):
    """A job that was never started."""
    return actions.create_job("flights", team, alice, "flights.py", JOB_FILE, {"parallelism": 2})


@pytest.fixture
def run(flights):
    """Its live run."""
    return Run.objects.create(
        job=flights,
        version=flights.versions.get(),
        cluster=flights.cluster,
        engine_job_id="a" * 32,
        state="RUNNING",
        state_since=NOW,
        parallelism=2,
        plan=PLAN,
    )


@pytest.fixture
def checkpoints(run):
    """Twenty of them; the last but one failed."""
    rows = [
        Checkpoint(
            run=run,
            engine_checkpoint_id=number,
            status="failed" if number == 19 else "completed",
            trigger_at=NOW + timedelta(seconds=number),
            duration_ms=100 + number,
            size_bytes=8_000,
            failure="checkpoint 19 expired" if number == 19 else "",
        )
        for number in range(1, 21)
    ]
    return Checkpoint.objects.bulk_create(rows)


@pytest.fixture
def savepoint(flights, run, alice):
    return Savepoint.objects.create(
        job=flights,
        run=run,
        version=run.version,
        location="/tmp/sp-1",
        origin="manual",
        label="before version 2",
        status="completed",
        event_time=datetime(2013, 3, 14, 5, 7, tzinfo=UTC),
        size_bytes=7_800,
        created_by=alice,
    )


@pytest.fixture
def replay(flights, savepoint, alice):
    return Replay.objects.create(
        number=1,
        job=flights,
        savepoint=savepoint,
        version=savepoint.version,
        parallelism=2,
        status="replaying",
        event_time_start=savepoint.event_time,
        history=[[1, 2, 3], [2, 3, 4]],
        created_by=alice,
    )


@pytest.fixture
def store(settings, tmp_path):
    settings.HEADWATER_HOME = tmp_path
    return series_store()


@pytest.fixture
def as_(db):
    """A browser in which somebody is signed in."""

    def signed_in(user):
        client = Client()
        client.force_login(user)
        return client

    return signed_in


@pytest.fixture(scope="session")
def engine_of_the_job(tmp_path_factory):
    """An engine that runs the job, behind an address."""
    service = FakeService()
    path: Path = tmp_path_factory.mktemp("jobs") / "flights.py"
    path.write_text("")
    artifact = asyncio.run(service.upload_artifact("flights.py", path))
    asyncio.run(service.run(RunRequest(Program(artifact.id, parallelism=2), job_id="a" * 32)))
    with served(service) as url:
        yield url
    asked.forget()


@pytest.fixture
def running(run, engine_of_the_job, store):
    """The job's run, on that engine."""
    asked.forget()
    type(run.cluster).objects.update(url=engine_of_the_job)
    return run
