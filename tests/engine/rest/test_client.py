"""The one client: against our engine in memory, and against the recorded answers of a Flink."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

import httpx
import pytest

from engine.checkpoint.coordination.stats import CheckpointStatus
from engine.elements import Micros
from engine.errors import Domain
from engine.rest import calls
from engine.rest.app import create_app
from engine.rest.calls.call import BUILD_S, Call
from engine.rest.client import (
    AsyncEngineClient,
    EngineClient,
    EngineUnreachable,
    NotFound,
    Refused,
    UnexpectedAnswer,
)
from engine.rest.model.jobs import Failure, FailureHistory, JobStatus, TaskStatus
from engine.rest.model.requests import (
    PreflightRequest,
    Program,
    RunRequest,
    SavepointRequest,
    StopRequest,
)
from engine.rest.model.states import StateQuery
from engine.rest.render.times import engine_watermark, flink_watermark
from engine.testing.fake_service import FakeService
from engine.testing.fake_values import EVENT_TIME, SOURCE_ID, WINDOW_ID
from engine.testing.in_memory import InMemory
from flink_captures import REQUESTS, capture

URL = "http://127.0.0.1:8081"
FLINK_JOB = "f9e2dec7421e24e9c49cd42e441e7bd6"
TRIGGER = "deadbeefdeadbeefdeadbeefdeadbeef"


@pytest.fixture
def engine(service: FakeService) -> EngineClient:
    return EngineClient(URL, transport=InMemory(create_app(service)))


def start(engine: EngineClient, **program: object) -> str:
    artifact = engine.upload("flights.py", b"pass\n")
    return engine.run(RunRequest(Program(artifact, **program)))  # type: ignore[arg-type]


def flink(name: str) -> httpx.MockTransport:
    """A Flink that answers one recorded request, and refuses any other."""
    method, recorded, status = REQUESTS[name]
    wanted = recorded.partition("?")[0]

    def answer(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == (method, wanted)
        return httpx.Response(status, json=capture(name))

    return httpx.MockTransport(answer)


def test_both_clients_have_every_request_as_a_method() -> None:
    modules = [f"{calls.__name__}.{found.name}" for found in iter_modules(calls.__path__)]
    requests = {
        name
        for module in map(import_module, modules)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if module.__name__.endswith("_calls")
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }
    for kind in (EngineClient, AsyncEngineClient):
        methods = {name for name in dir(kind) if not name.startswith("_")} - {"send", "close"}
        assert methods == requests


def test_a_job_is_run_watched_and_stopped(engine: EngineClient) -> None:
    job_id = start(engine, parallelism=2, settings={"pipeline.name": "flights"})
    (summary,) = engine.jobs()
    assert (summary.id, summary.name, summary.state) == (job_id, "flights", JobStatus.RUNNING)
    assert summary.all_running

    job = engine.job(job_id)
    assert job.all_running
    assert [vertex.parallelism for vertex in job.vertices] == [2, 2]
    assert [node.operators for node in job.plan.nodes] == [
        ("Source: flights", "by day (partial)"),
        ("by day", "files"),
    ]
    assert job.plan.nodes[1].inputs[0].ship_strategy == "HASH"

    trigger = engine.stop(job_id, StopRequest(drain=True, trigger_id=TRIGGER))
    assert not engine.savepoint_status(job_id, trigger).done
    done = engine.savepoint_status(job_id, trigger)
    assert (done.done, done.failure) == (True, None)
    assert engine.job_status(job_id) is JobStatus.FINISHED
    assert engine.job_result(job_id).status == "SUCCEEDED"


def test_figures_of_a_vertex_arrive(engine: EngineClient) -> None:
    job_id = start(engine, parallelism=2)
    names = ["0.numRecordsIn", "1.busyTimeMsPerSecond", "0.nope"]
    assert engine.vertex_metrics(job_id, WINDOW_ID, names) == {
        "0.numRecordsIn": "55127",
        "1.busyTimeMsPerSecond": "150",
    }
    aggregated = engine.subtask_metrics(job_id, WINDOW_ID, ["numRecordsInPerSecond"])
    assert aggregated["numRecordsInPerSecond"]["sum"] == 1807.0
    assert engine.watermarks(job_id, WINDOW_ID) == dict.fromkeys(
        (0, 1), flink_watermark(EVENT_TIME)
    )
    assert engine.watermarks(job_id, SOURCE_ID) == {}
    assert [part.level for part in engine.backpressure(job_id, WINDOW_ID)] == ["ok", "ok"]
    assert [part.status for part in engine.subtasks(job_id, WINDOW_ID)] == [TaskStatus.RUNNING] * 2


def test_checkpoints_arrive(engine: EngineClient) -> None:
    job_id = start(engine, parallelism=2)
    trigger = engine.trigger_checkpoint(job_id)
    engine.checkpoint_status(job_id, trigger)
    assert engine.checkpoint_status(job_id, trigger).checkpoint_id == 2

    listed = engine.checkpoints(job_id)
    assert (listed.counts.completed, [entry.id for entry in listed.history]) == (2, [2, 1])
    entry = engine.checkpoint(job_id, 2)
    assert entry.vertices.keys() == {SOURCE_ID, WINDOW_ID}
    assert entry.status is CheckpointStatus.COMPLETED
    parts = engine.checkpoint_subtasks(job_id, 2, WINDOW_ID)
    assert [part.async_ms for part in parts] == [14, 14]
    assert engine.checkpoint_config(job_id).interval_ms == 1_000


def test_a_savepoint_is_described_and_checked_before_a_start(engine: EngineClient) -> None:
    job_id = start(engine)
    trigger = engine.trigger_savepoint(job_id, SavepointRequest(target="file:///data/svpt"))
    engine.savepoint_status(job_id, trigger)
    path = engine.savepoint_status(job_id, trigger).location
    assert path is not None

    summary = engine.savepoint(path)
    assert summary.event_time_us == EVENT_TIME
    assert summary.source_positions == {"flights": {"EWR": 1000, "JFK": 1000, "LGA": 1000}}
    assert summary.size_bytes == 20_219

    program = Program(engine.artifacts()[0].id)
    report = engine.preflight(PreflightRequest(program, path))
    assert report.ok
    assert {(row.uid, row.outcome) for row in report.rows} >= {("daily", "restored")}
    again = engine.run(RunRequest(program, savepoint_path=path))
    restored = engine.checkpoints(again).restored
    assert restored is not None
    assert restored.external_path == path


def test_progress_arrives_in_microseconds(engine: EngineClient) -> None:
    progress = engine.progress(start(engine))
    assert progress.event_time_us == EVENT_TIME
    assert progress.pending_rows == 12
    assert progress.sources[0].newest_us is None


def test_live_state_is_asked_for_by_names_of_any_letters(engine: EngineClient) -> None:
    job_id = start(engine)
    found = engine.live_state(job_id, StateQuery("daily", "slices", {"carrier": "ü/=&"}))
    assert found.kind == "runs"
    assert not found.is_found
    with pytest.raises(NotFound, match="job has no operator 'a/b c'"):
        engine.live_state(job_id, StateQuery("a/b c", "slices", {}))


def test_metrics_are_asked_for_by_the_names_that_are_listed(engine: EngineClient) -> None:
    job_id = start(engine)
    assert "uptime" in engine.metric_names(job_id)
    names = engine.metric_names(job_id, SOURCE_ID)
    assert "busyTimeMsPerSecond" in names
    assert set(engine.subtask_metrics(job_id, SOURCE_ID, names)) <= set(names)


def test_a_failure_is_one_sentence(engine: EngineClient, service: FakeService) -> None:
    job_id = start(engine)
    service.fail(job_id, "operator 'daily' failed on row 7")
    (failure,) = engine.job_failures(job_id)
    assert failure.sentence == "operator 'daily' failed on row 7"
    assert failure.task == "by day → files (1/1) - execution #0"
    assert engine.job_result(job_id).failure == failure.sentence


def test_the_cause_is_not_taken_for_one_of_its_echoes(
    engine: EngineClient, service: FakeService
) -> None:
    job_id = start(engine)
    lost = Failure("WorkerLost", "worker 2 of tm-1 was killed", 7_000, Domain.EXTERNAL)
    echo = Failure("ChannelClosed", "worker 2 is gone", 7_005, task="daily (1/2) - execution #0")
    service.histories[job_id] = FailureHistory((replace(lost, concurrent=(echo,)),))
    (failure,) = engine.job_failures(job_id)
    assert (failure.sentence, failure.domain) == ("worker 2 of tm-1 was killed", "external")
    assert [other.sentence for other in failure.echoes] == ["worker 2 is gone"]


def test_the_cluster_is_described(engine: EngineClient) -> None:
    start(engine, parallelism=2)
    overview = engine.overview()
    assert (overview.task_managers, overview.slots_total, overview.slots_available) == (2, 8, 6)
    managers = engine.task_managers()
    assert [manager.worker_pids for manager in managers] == [(5000,), (5001,)]
    assert engine.capabilities().engine == "headwater"
    wanted = ["Status.Process.CPU.Load"]
    assert engine.task_manager_metrics(managers[0].id, wanted) == {wanted[0]: "0.06"}
    assert engine.job_manager_metrics(["taskSlotsTotal"]) == {"taskSlotsTotal": "8"}


def test_what_is_not_there_is_not_found(engine: EngineClient) -> None:
    with pytest.raises(NotFound, match="job 00000000000000000000000000000000 not found"):
        engine.job("0" * 32)


def test_what_is_refused_says_why(engine: EngineClient) -> None:
    with pytest.raises(Refused, match="only Python programs are allowed") as refused:
        engine.upload("flights.jar", b"")
    assert refused.value.status == 400
    assert not isinstance(refused.value, NotFound)


def test_a_token_is_sent(service: FakeService) -> None:
    transport = InMemory(create_app(service, token="secret"))
    with EngineClient(URL, token="secret", transport=transport) as engine:
        assert engine.jobs() == []
    with EngineClient(URL, transport=transport) as engine, pytest.raises(Refused, match="bearer"):
        engine.jobs()


def test_an_engine_that_is_away_is_unreachable() -> None:
    engine = EngineClient("http://127.0.0.1:9", timeout=1.0)
    with engine, pytest.raises(EngineUnreachable, match="cannot be reached"):
        engine.overview()


@pytest.mark.parametrize("content", [b"<html>", b"[]", b"{}", b'{"jobs": [{}]}'])
def test_another_service_is_not_taken_for_an_engine(content: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    engine = EngineClient(URL, transport=transport)
    with engine, pytest.raises(UnexpectedAnswer, match="cannot be read"):
        engine.jobs()


def test_a_graph_may_take_longer_to_build_than_other_answers() -> None:
    patience: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        patience.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, json={"jobs": [], "jobid": "f" * 32})

    with EngineClient(URL, timeout=2.0, transport=httpx.MockTransport(answer)) as engine:
        engine.jobs()
        engine.run(RunRequest(Program("flights.py")))
    assert patience == [2.0, BUILD_S]


def test_an_error_page_of_a_proxy_is_refused_with_its_status() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(502, text="<html>bad gateway"))
    engine = EngineClient(URL, transport=transport)
    with engine, pytest.raises(Refused, match="502 Bad Gateway"):
        engine.jobs()


async def test_the_awaiting_client_gives_the_same(service: FakeService) -> None:
    transport = httpx.ASGITransport(create_app(service))
    async with AsyncEngineClient(URL, transport=transport) as engine:
        artifact = await engine.upload("flights.py", b"pass\n")
        job_id = await engine.run(RunRequest(Program(artifact)))
        jobs, progress = await asyncio.gather(engine.jobs(), engine.progress(job_id))
        assert [job.id for job in jobs] == [progress and job_id]
        with pytest.raises(NotFound):
            await engine.job("0" * 32)


def test_flinks_job_is_read() -> None:
    job = EngineClient(URL, transport=flink("21_job")).job(FLINK_JOB)
    assert job.all_running
    assert job.plan.nodes[0].operators == ("Source: datagen", "check")
    assert job.vertices[1].counters.read_records == 37_870
    assert job.waiting_for is None


def test_flinks_lists_are_read() -> None:
    jobs = EngineClient(URL, transport=flink("60_jobs_overview_mixed")).jobs()
    assert len(jobs) == len(capture("60_jobs_overview_mixed")["jobs"])
    (manager,) = EngineClient(URL, transport=flink("27_taskmanagers")).task_managers()
    assert (manager.slots, manager.free_slots, manager.pid) == (4, 2, None)
    (file,) = EngineClient(URL, transport=flink("11_jars_list")).artifacts()
    assert file.name == "keyed-count.jar"


def test_flinks_uploaded_jar_is_named_by_the_end_of_its_path() -> None:
    engine = EngineClient(URL, transport=flink("10_jars_upload"))
    assert engine.upload("x.jar", b"") == "1c19f6ac-d0fb-4eba-b166-d33955a95dbd_keyed-count.jar"


def test_flinks_checkpoints_are_read() -> None:
    engine = EngineClient(URL, transport=flink("34_checkpoints_after_savepoint"))
    listed = engine.checkpoints(FLINK_JOB)
    assert [entry.status for entry in listed.history[:3]] == [
        CheckpointStatus.IN_PROGRESS,
        CheckpointStatus.COMPLETED,
        CheckpointStatus.FAILED,
    ]
    assert listed.latest_failed is not None
    assert listed.latest_failed.failure is not None
    restored = EngineClient(URL, transport=flink("52_restored_checkpoints")).checkpoints(
        "fd92e87a45e9802d9f256b5143010cce"
    )
    assert restored.restored is not None
    assert restored.restored.id == 51


def test_flinks_root_cause_is_found_among_the_concurrent_ones() -> None:
    engine = EngineClient(URL, transport=flink("73_failed_exceptions"))
    failures = engine.job_failures("c81a614d6945f32372fe37ab4b6b2967")
    assert {failure.sentence for failure in failures} == {"poison key 7"}


def test_flinks_failed_savepoint_is_one_sentence() -> None:
    engine = EngineClient(URL, transport=flink("32_savepoint_bad_dir_poll_completed"))
    status = engine.savepoint_status(FLINK_JOB, "b82f4d5788fe6eaba069cbea5abde88a")
    assert status.done
    assert status.failure is not None
    assert "\n" not in status.failure
    assert "org.apache" not in status.failure.partition(" (")[0]


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("40_err_job_unknown", NotFound, "Job 00000000000000000000000000000000 not found"),
        ("40_err_jar_unknown_run", Refused, "Jar file .*nope.jar does not exist"),
        ("53_run_with_same_jobid", Refused, r"Could not execute application\. \(.*already"),
        ("42_savepoint_without_dir", Refused, "savepoint-dir.* is not set"),
    ],
)
def test_flinks_refusals_are_one_sentence(name: str, kind: type[Refused], sentence: str) -> None:
    method, recorded, status = REQUESTS[name]
    call = Call(method, recorded, lambda body: body)
    with pytest.raises(kind, match=sentence) as refused:
        EngineClient(URL, transport=flink(name)).send(call)
    assert refused.value.status == status
    assert "\tat" not in refused.value.message


@pytest.mark.parametrize("micros", [0, 1_000, 1_363_000_000_000_000, -5_000])
def test_a_watermark_survives_flinks_unit(micros: int) -> None:
    assert engine_watermark(flink_watermark(Micros(micros))) == micros


def test_a_watermark_inside_a_millisecond_promises_only_the_whole_ones_before() -> None:
    # No later row is before 1,999 µs; rows of millisecond 1 may still come.
    assert flink_watermark(Micros(1_999)) == 0
    assert flink_watermark(Micros(2_000)) == 1
