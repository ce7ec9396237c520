"""The adapter against a scripted Apache Flink: what each of its faults becomes."""

from __future__ import annotations

import pytest

from controlplane.backends.contract import Start
from controlplane.backends.errors import EngineAway, EngineRefused, UnknownJob, UnknownTrigger
from controlplane.backends.metrics import metric_values
from controlplane.backends.models import Cluster
from controlplane.backends.rest import RestBackend
from controlplane.backends.watch import EngineWatch
from engine.rest.client import EngineClient
from scripted_flink import HangUp, Says, Slow, running_flink

JOB, TRIGGER = "0a" * 16, "0b" * 16
VERTEX = "bd9c186e89cc37a76d776844dfa8ccba"
IMPATIENT_S = 0.2


@pytest.fixture(scope="module")
def cluster():
    with running_flink() as flink:
        yield flink


@pytest.fixture
def flink(cluster):
    cluster.restart(keeps_jobs=False)
    cluster.jobs.clear()
    return cluster


@pytest.fixture
def engine(flink):
    with EngineClient(flink.url, timeout=IMPATIENT_S) as client:
        yield RestBackend(client, client)


@pytest.fixture
def running(engine, tmp_path):
    path = tmp_path / "0a1b"
    path.write_bytes(b"PK")
    engine.start(Start(engine.upload("count.jar", path), JOB, 1, settings={"pipeline.name": "c"}))
    return JOB


def finish(engine, trigger=TRIGGER):
    while not (status := engine.savepoint_status(JOB, trigger)).done:
        pass
    return status


def test_a_job_starts_and_is_up(engine, running):
    job = engine.job(JOB)
    assert (job.name, job.is_up, job.tasks_running, job.tasks_total) == ("c", True, 6, 6)


def test_the_same_job_id_twice_is_refused_with_one_sentence(engine, running):
    with pytest.raises(EngineRefused) as refused:
        engine.start(Start("0f3a_count.jar", JOB, 1))
    assert "\n" not in refused.value.message
    assert "already" in refused.value.message


def test_a_trigger_of_an_earlier_job_manager_is_unknown_and_the_job_is_not(
    engine, running, flink, tmp_path
):
    engine.trigger_savepoint(JOB, str(tmp_path), TRIGGER)
    flink.restart()
    with pytest.raises(UnknownTrigger):
        engine.savepoint_status(JOB, TRIGGER)
    assert engine.job(JOB).is_up
    assert engine.savepoint_locations(JOB) == []


def test_the_same_trigger_id_is_one_savepoint(engine, running, flink, tmp_path):
    for _ in range(2):
        engine.trigger_savepoint(JOB, str(tmp_path), TRIGGER)
    location = finish(engine).location
    assert [location] == engine.savepoint_locations(JOB)[:1]
    assert len(flink.triggers) == 1


def test_a_savepoint_of_a_job_that_has_ended_fails_only_in_the_poll(engine, running, tmp_path):
    engine.cancel(JOB)
    engine.trigger_savepoint(JOB, str(tmp_path), TRIGGER)
    assert "not running" in finish(engine).failure


def test_what_flink_cannot_say_of_a_savepoint_is_unknown(engine, running, tmp_path):
    engine.trigger_savepoint(JOB, str(tmp_path), TRIGGER)
    found = engine.savepoint(finish(engine).location)
    assert (found.event_time, found.size_bytes, found.source_positions) == (None, None, {})


def test_cancelling_a_job_that_has_finished_is_refused(engine, running, flink):
    flink.jobs[JOB].state = "FINISHED"
    with pytest.raises(EngineRefused, match="already reached another terminal state"):
        engine.cancel(JOB)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Says(404, "Job not found"), UnknownJob),
        (Says(409, "the job is being rescaled"), EngineRefused),
        (Says(500), EngineRefused),
        (Says(503, "no leader"), EngineAway),
        (Slow(30), EngineAway),
        (HangUp(), EngineAway),
        (HangUp(done=True), EngineAway),
    ],
)
def test_each_fault_has_its_error(engine, running, flink, fault, error):
    flink.next("GET", JOB, fault)
    with pytest.raises(error) as raised:
        engine.job(JOB)
    assert type(raised.value) is error
    assert "\n" not in raised.value.message
    assert engine.job(JOB).is_up


async def test_a_look_goes_on_with_what_a_flink_knows_after_its_restart(engine, running, flink):
    flink.checkpoint(JOB, 7)
    now = [0.0]
    watch = EngineWatch(flink.url, clock=lambda: now[0])
    before = (await watch.look([JOB])).jobs[JOB]
    flink.restart()
    now[0] += 60
    after = (await watch.look([JOB])).jobs[JOB]
    await watch.close()
    assert [one.id for one in before.checkpoints] == [7]
    assert (after.checkpoints, after.completed, after.failures) == ((), None, ())
    assert after.state == "RUNNING"


async def test_looks_ask_a_flink_only_for_what_it_may_have_anew(engine, running, flink):
    now = [0.0]
    watch = EngineWatch(flink.url, clock=lambda: now[0])

    async def requests(at):
        now[0] = at
        flink.asked.clear()
        await watch.look([JOB])
        return sorted(one.rpartition("/")[2] for one in flink.asked)

    await requests(0)
    await requests(100)  # the first time of each part is spread
    assert await requests(101) == ["overview", "overview"]
    assert await requests(103) == [JOB, "checkpoints", "overview", "overview"]
    assert len(await requests(110)) == 2 + 2 + 1 + 3
    flink.jobs[JOB].state = "CANCELED"
    assert "exceptions" in await requests(111)
    await watch.close()


async def test_figures_of_vertices_are_seen_though_flink_knows_not_all_names(
    engine, running, flink
):
    watch = EngineWatch(flink.url, clock=lambda: 0.0)
    vertices = (await watch.look([JOB])).jobs[JOB].vertices
    await watch.close()
    assert {round(vertex.out_rate, 1) for vertex in vertices} == {83.3}
    assert all(vertex.busy == 0.0 and vertex.watermark_ms == 1 for vertex in vertices)


def test_a_name_that_a_vertex_lacks_hides_no_other(running, flink):
    cluster = Cluster(name="far", url=flink.url, kind=Cluster.Kind.FLINK)
    names = ("numRecordsInPerSecond", "nonsense")
    found = metric_values(cluster, JOB, VERTEX, names).value
    assert found is not None
    assert (list(found), round(found["numRecordsInPerSecond"].total, 1)) == (
        ["numRecordsInPerSecond"],
        1755.7,
    )
