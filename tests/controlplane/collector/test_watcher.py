"""One look at an engine: what it writes, what it tells the pages, and what it does not repeat."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.utils import timezone

from controlplane.access.models import Team
from controlplane.backends.models import Cluster
from controlplane.collector import mirror
from controlplane.collector.board import Board
from controlplane.collector.watcher import Watcher
from controlplane.jobs.models import Job, JobVersion, Run, RunFailure
from controlplane.live import topics
from controlplane.live.latest import latest_store
from controlplane.metrics.store import series_store
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Checkpoint, Savepoint
from engine.rest.app import create_app
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest, SavepointRequest
from engine.testing.fake_service import FakeService

pytestmark = pytest.mark.django_db(transaction=True)

LIVE, BESIDE = "a" * 32, "b" * 32


class Away(httpx.AsyncBaseTransport):
    """An engine's address where nobody listens."""

    async def handle_async_request(self, request):
        msg = "connection refused"
        raise httpx.ConnectError(msg)


@pytest.fixture
def run(tmp_path, settings):
    settings.HEADWATER_HOME = tmp_path
    cluster = Cluster.objects.create(name="here", url="http://127.0.0.1:8081")
    job = Job.objects.create(name="flights", team=Team.objects.create(name="demo"), cluster=cluster)
    version = JobVersion.objects.create(
        job=job, number=1, filename="flights.py", checksum="0" * 64, size_bytes=1
    )
    yield Run.objects.create(
        job=job,
        version=version,
        cluster=cluster,
        engine_job_id=LIVE,
        state_since=timezone.now(),
    )
    for topic in (topics.FLEET, topics.job(job.pk), topics.operators(job.pk)):
        latest_store().forget(topics.parse(topic))
    for topic in (topics.events(job.pk), topics.checkpoints(job.pk)):
        latest_store().forget(topics.parse(topic))
    series_store().close()


@pytest.fixture
async def engine(tmp_path):
    """An engine that runs the job."""
    service = FakeService()
    path = tmp_path / "flights.py"
    path.write_text("")
    artifact = await service.upload_artifact("flights.py", path)
    for job_id in (LIVE, BESIDE):
        await service.run(RunRequest(Program(artifact.id), job_id=job_id))
    return service


@asynccontextmanager
async def watching(cluster, engine, board=None):
    transport = httpx.ASGITransport(create_app(engine)) if engine else Away()
    watcher = Watcher(cluster, board or Board(), transport)
    yield watcher
    await watcher.close()


def value(topic):
    return latest_store().get(topics.parse(topic)).value


async def cluster_of(run):
    return await Cluster.objects.aget(pk=run.cluster_id)


async def test_a_look_tells_the_pages_what_the_engine_says(run, engine):
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    record = value(topics.job(run.job_id))
    assert (record["state"], record["run"], record["restarts"]) == ("RUNNING", run.pk, 0)
    assert record["event_ms"] == 1_363_000_000_000
    assert record["pending"] == 12
    assert record["ckpt"]["id"] == 1
    fleet = value(topics.FLEET)
    assert fleet[str(run.job_id)]["state"] == "RUNNING"
    assert fleet["sum"]["engine"] == "ok"
    assert (fleet["sum"]["running"], fleet["sum"]["task_managers"]) == (1, 2)
    operators = value(topics.operators(run.job_id))
    assert len(operators) == len(engine.known[LIVE].vertices)
    assert {row["bytes"] for row in operators.values()} == {20_219}
    assert {row["skew"] for row in operators.values()} == {1.0}


async def test_the_run_and_the_cluster_are_noted(run, engine):
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    await run.arefresh_from_db()
    assert run.state == "RUNNING"
    assert [node["id"] for node in run.plan["nodes"]] == [
        vertex.id for vertex in engine.known[LIVE].vertices
    ]
    cluster = await cluster_of(run)
    assert cluster.status == "ok"
    assert cluster.capabilities["engine"] == "headwater"


async def test_checkpoints_are_mirrored_once_however_often_one_looks(run, engine):
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
        await engine.trigger_savepoint(LIVE, SavepointRequest())
        await watcher.look()
        await watcher.look()
    rows = Checkpoint.objects.filter(run=run).order_by("engine_checkpoint_id")
    assert [(row.kind, row.status) async for row in rows] == [
        ("checkpoint", "completed"),
        ("savepoint", "completed"),
    ]
    assert len(value(topics.checkpoints(run.job_id))["events"]) == 2


async def test_a_new_collector_tells_nothing_twice(run, engine):
    engine.fail(LIVE, "row 7 of flights.parquet has no column dep_delay")
    engine.known[LIVE] = replace(engine.known[LIVE], status=JobStatus.RESTARTING)
    for _ in range(2):
        async with watching(await cluster_of(run), engine) as watcher:
            await watcher.look()
    events = value(topics.events(run.job_id))["events"]
    assert [event["title"] for event in events] == ["Restarted"]
    assert "has no column dep_delay" in events[0]["text"]
    assert await Checkpoint.objects.filter(run=run).acount() == 1


async def test_what_happened_while_no_collector_ran_is_mirrored_after(run, engine):
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    for _ in range(30):
        await engine.trigger_checkpoint(LIVE, None, full=False)
    engine.fail(LIVE, "worker 2 was lost")
    metrics = engine.known[LIVE].metrics | {"numRestarts": 3}
    engine.known[LIVE] = replace(
        engine.known[LIVE], status=JobStatus.RUNNING, metrics=metrics, failure=None
    )
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    await run.arefresh_from_db()
    assert await Checkpoint.objects.filter(run=run, status="completed").acount() == 31
    assert (run.state, run.attempt) == ("RUNNING", 3)
    assert "worker 2 was lost" in run.failure
    assert await RunFailure.objects.filter(run=run).acount() == 1
    assert len(value(topics.checkpoints(run.job_id))["events"]) == 31
    assert len(value(topics.events(run.job_id))["events"]) == 1


@pytest.mark.parametrize("moment", ["write", "_seen_again"])
async def test_a_collector_that_dies_in_a_look_leaves_the_whole_look_to_the_next(
    moment, run, engine, monkeypatch
):
    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    place = mirror.checkpoint_notes if moment == "write" else mirror
    with monkeypatch.context() as patched:
        patched.setattr(place, moment, die)
        async with watching(await cluster_of(run), engine) as watcher:
            with pytest.raises(Killed):
                await watcher.look()
    assert await Checkpoint.objects.filter(run=run).acount() == 0
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    assert await Checkpoint.objects.filter(run=run).acount() == 1
    assert len(value(topics.checkpoints(run.job_id))["events"]) == 1


async def test_what_was_written_and_not_told_is_told_by_the_next_collector(run, engine):
    engine.fail(LIVE, "worker 2 was lost")
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    latest_store().forget(topics.parse(topics.events(run.job_id)))  # killed before it told
    await Run.objects.filter(pk=run.pk).aupdate(state="RUNNING", ended_at=None)
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    assert len(value(topics.events(run.job_id))["events"]) == 1


async def test_a_look_that_the_database_lost_is_made_good_by_the_next(run, engine, monkeypatch):
    def fail(*_):
        msg = "database is locked"
        raise OperationalError(msg)

    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
        for _ in range(30):  # more than looks overlap by
            await engine.trigger_checkpoint(LIVE, None, full=False)
        with monkeypatch.context() as patched:
            patched.setattr(mirror, "_seen_again", fail)
            await watcher.look()
        await engine.trigger_checkpoint(LIVE, None, full=False)
        await watcher.look()
    assert await Checkpoint.objects.filter(run=run).acount() == 32


async def test_a_job_that_failed_keeps_the_reason_and_loses_its_rates(run, engine):
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
        engine.fail(LIVE, "the disk is full")
        await watcher.look()
    await run.arefresh_from_db()
    assert run.state == "FAILED"
    assert "the disk is full" in run.failure
    kept = await run.failures.aget()
    assert (kept.name, kept.sentence, kept.domain) == ("FunctionError", "the disk is full", "user")
    assert kept.task == "by day → files (1/1) - execution #0"
    assert value(topics.FLEET)[str(run.job_id)]["in"] is None


async def test_an_engine_that_is_away_is_shown_as_away_and_nothing_is_invented(run, engine):
    cluster, board = await cluster_of(run), Board()
    async with watching(cluster, engine, board) as watcher:
        await watcher.look()
    async with watching(cluster, None, board) as watcher:
        await watcher.look()
        await watcher.look()
    await run.arefresh_from_db()
    assert run.state == "RUNNING"
    assert (await cluster_of(run)).status == "away"
    fleet = value(topics.FLEET)
    assert fleet["sum"]["engine"] == "away"
    assert (fleet["sum"]["slots"], fleet["sum"]["in"]) == (None, None)
    assert fleet[str(run.job_id)]["event_ms"] is None
    assert "does not answer" in value(topics.job(run.job_id))["note"]


async def test_a_run_that_the_engine_does_not_know_is_lost_after_a_while(run, engine):
    del engine.known[LIVE]
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
        await run.arefresh_from_db()
        assert run.state == "INITIALIZING"  # perhaps it is just being started
        long_ago = timezone.now() - timezone.timedelta(minutes=5)
        await Run.objects.filter(pk=run.pk).aupdate(started_at=long_ago)
        await watcher.look()
    await run.arefresh_from_db()
    assert run.state == "LOST"


async def test_a_replay_is_sampled_against_the_live_job(run, engine):
    def make_replay():
        beside = Run.objects.create(
            job=run.job,
            version=run.version,
            cluster=run.cluster,
            engine_job_id=BESIDE,
            purpose=Run.Purpose.REPLAY,
            state_since=timezone.now(),
        )
        savepoint = Savepoint.objects.create(job=run.job, origin="manual", status="completed")
        return Replay.objects.create(
            number=1,
            job=run.job,
            savepoint=savepoint,
            version=run.version,
            run=beside,
            status=Replay.Status.REPLAYING,
        )

    replay = await sync_to_async(make_replay)()
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    await replay.arefresh_from_db()
    assert len(replay.samples) == 1
    assert replay.event_time_now == replay.live_event_time
    assert replay.live_event_time.year == 2013
    # What the page of the live job shows is the live run's only.
    assert value(topics.job(run.job_id))["run"] == run.pk


async def test_figures_are_kept_as_series(run, engine):
    async with watching(await cluster_of(run), engine) as watcher:
        await watcher.look()
    store = series_store()
    assert store.measurements("engine") == ["job", "operator"]
    (series,) = store.query("engine", "job", "event_ms")
    assert series.tags == {"job": "flights", "purpose": "live", "run": str(run.pk)}
    assert series.points[0][1] == 1_363_000_000_000
