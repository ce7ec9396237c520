"""Commands: what they answer, as Flink does, and what they change."""

from __future__ import annotations

import base64

import httpx
import pytest

from engine.rest.model.requests import ClaimMode
from engine.testing.fake_service import FakeService
from flink_captures import REQUESTS, capture, differences

TRIGGER = "deadbeefdeadbeefdeadbeefdeadbeef"


async def test_a_savepoint_is_triggered_polled_and_found(http: httpx.AsyncClient, job: str) -> None:
    body = {"target-directory": "file:///data/svpt", "formatType": "CANONICAL", "triggerId": None}
    triggered = await http.post(f"/jobs/{job}/savepoints", json=body)
    assert triggered.status_code == REQUESTS["30_savepoint_trigger"][2] == 202
    assert differences(triggered.json(), capture("30_savepoint_trigger")) == set()

    poll = f"/jobs/{job}/savepoints/{triggered.json()['request-id']}"
    assert (await http.get(poll)).json() == capture("30_savepoint_poll_in_progress")
    done = (await http.get(poll)).json()
    assert differences(done, capture("30_savepoint_poll_completed")) == set()

    latest = (await http.get(f"/jobs/{job}/checkpoints")).json()["latest"]
    assert latest["savepoint"]["external_path"] == done["operation"]["location"]
    assert done["operation"]["location"].startswith("file:///data/svpt/savepoint-f9e2de-")


async def test_a_trigger_id_of_the_client_is_one_operation(
    http: httpx.AsyncClient, job: str
) -> None:
    for _ in range(2):
        answer = await http.post(f"/jobs/{job}/savepoints", json={"triggerId": TRIGGER})
        assert answer.json() == {"request-id": TRIGGER}
    counts = (await http.get(f"/jobs/{job}/checkpoints")).json()["counts"]
    assert counts["completed"] == 2


@pytest.mark.parametrize("content", [b"", b"{}", b'{"foo": 1}', b'{"triggerId": null}'])
async def test_an_empty_body_and_unknown_fields_are_fine(
    content: bytes, http: httpx.AsyncClient, job: str
) -> None:
    answer = await http.post(f"/jobs/{job}/savepoints", content=content)
    assert answer.status_code == 202


async def test_a_failed_savepoint_is_completed_with_its_cause(
    http: httpx.AsyncClient, job: str
) -> None:
    body = {"target-directory": "/unwritable", "triggerId": TRIGGER}
    await http.post(f"/jobs/{job}/savepoints", json=body)
    poll = f"/jobs/{job}/savepoints/{TRIGGER}"
    await http.get(poll)
    failed = (await http.get(poll)).json()
    assert differences(failed, capture("32_savepoint_bad_dir_poll_completed")) == set()
    cause = failed["operation"]["failure-cause"]
    assert cause["stack-trace"].startswith("savepoint cannot be written: /unwritable is read-only")
    assert b"savepoint cannot be written" in base64.b64decode(cause["serialized-throwable"])


async def test_stop_ends_the_job_as_finished(http: httpx.AsyncClient, job: str) -> None:
    body = {"targetDirectory": "file:///data/svpt", "drain": False, "triggerId": TRIGGER}
    stopped = await http.post(f"/jobs/{job}/stop", json=body)
    assert stopped.status_code == REQUESTS["50_stop_trigger"][2]
    poll = f"/jobs/{job}/savepoints/{TRIGGER}"
    await http.get(poll)
    done = (await http.get(poll)).json()
    assert differences(done, capture("50_stop_poll_completed")) == set()

    assert (await http.get(f"/jobs/{job}/status")).json() == {"status": "FINISHED"}
    history = (await http.get(f"/jobs/{job}/checkpoints")).json()["history"]
    assert history[0]["checkpoint_type"] == "SYNC_SAVEPOINT"
    recorded = capture("50_stopped_checkpoints")["history"]
    assert any(entry["checkpoint_type"] == "SYNC_SAVEPOINT" for entry in recorded)


@pytest.mark.parametrize("kind", ["FULL", "INCREMENTAL", "CONFIGURED", None])
async def test_a_manual_checkpoint_has_an_id(
    http: httpx.AsyncClient, job: str, kind: str | None
) -> None:
    triggered = await http.post(f"/jobs/{job}/checkpoints", json={"checkpointType": kind})
    assert triggered.status_code == REQUESTS["33_checkpoint_trigger"][2]
    poll = f"/jobs/{job}/checkpoints/{triggered.json()['request-id']}"
    assert (await http.get(poll)).json() == capture("33_checkpoint_poll_in_progress")
    done = (await http.get(poll)).json()
    assert differences(done, capture("33_checkpoint_poll_completed")) == set()
    assert done["operation"]["checkpointId"] == 2


async def test_cancel_may_be_repeated_but_not_after_another_end(
    http: httpx.AsyncClient, job: str, service: FakeService
) -> None:
    for _ in range(2):
        answer = await http.patch(f"/jobs/{job}", params={"mode": "cancel"})
        assert (answer.status_code, answer.json()) == (202, capture("35_cancel"))
    result = (await http.get(f"/jobs/{job}/execution-result")).json()
    assert differences(result, capture("35_cancelled_execution_result")) == set()


async def test_a_failed_job_says_why(
    http: httpx.AsyncClient, job: str, service: FakeService
) -> None:
    service.fail(job, "operator 'daily' failed on row 7: no column 'delay'")
    result = (await http.get(f"/jobs/{job}/execution-result")).json()
    # Flink leaves it out where an application failed before its job began.
    extra = {"extra $.job-execution-result.application-id"}
    assert differences(result, capture("41_err_jar_run_badsp_result")) == extra
    shown = (await http.get(f"/jobs/{job}/exceptions", params={"maxExceptions": "5"})).json()
    entry = shown["exceptionHistory"]["entries"][0]
    assert entry["stacktrace"].splitlines()[0] == (
        "FunctionError: operator 'daily' failed on row 7: no column 'delay'"
    )
    recorded = capture("73_failed_exceptions")
    assert differences(shown, recorded) == {
        "extra $.exceptionHistory.entries[].failureLabels.domain",
        *(
            f"missing $.exceptionHistory.entries[].concurrentExceptions[]{field}"
            for field in (
                "",
                ".endpoint",
                ".exceptionName",
                ".failureLabels",
                ".stacktrace",
                ".taskManagerId",
                ".taskName",
                ".timestamp",
            )
        ),
    }


async def test_an_upload_is_listed_run_and_deleted(http: httpx.AsyncClient) -> None:
    uploaded = await http.post("/jars/upload", files={"jarfile": ("job.py", b"pass\n")})
    assert uploaded.status_code == REQUESTS["10_jars_upload"][2]
    assert differences(uploaded.json(), capture("10_jars_upload")) == set()
    identity = uploaded.json()["filename"]

    ran = await http.post(f"/jars/{identity}/run", json={"parallelism": 2})
    assert ran.status_code == REQUESTS["13_jar_run"][2]
    assert differences(ran.json(), capture("13_jar_run")) == set()

    assert (await http.delete(f"/jars/{identity}")).status_code == 200
    assert (await http.get("/jars")).json()["files"] == []


async def test_a_run_request_arrives_whole(
    http: httpx.AsyncClient, artifact: str, job: str, service: FakeService
) -> None:
    await http.post(f"/jobs/{job}/savepoints", json={"triggerId": TRIGGER})
    path = next(iter(service.manifests))
    body = {
        "entryClass": None,
        "programArgsList": ["--speed", "10"],
        "parallelism": 3,
        "savepointPath": path,
        "allowNonRestoredOperators": ["daily"],
        "claimMode": "NO_CLAIM",
        "flinkConfiguration": {"pipeline.name": "flights@r-1", "retries": 2, "on": True},
    }
    assert (await http.post(f"/jars/{artifact}/run", json=body)).status_code == 200
    request = service.requests[-1]
    assert request.program.arguments == ("--speed", "10")
    assert request.program.parallelism == 3
    assert request.program.settings == {
        "pipeline.name": "flights@r-1",
        "retries": "2",
        "on": "true",
    }
    assert request.savepoint_path == path
    assert request.allow_non_restored == frozenset({"daily"})


@pytest.mark.parametrize("field", ["claimMode", "restoreMode"])
async def test_a_snapshot_can_be_claimed(
    http: httpx.AsyncClient, artifact: str, service: FakeService, field: str
) -> None:
    assert (await http.post(f"/jars/{artifact}/run", json={field: "CLAIM"})).status_code == 200
    assert service.requests[-1].claim is ClaimMode.CLAIM


async def test_a_run_may_be_asked_for_in_the_query(
    http: httpx.AsyncClient, artifact: str, service: FakeService
) -> None:
    query = "programArg=--speed&programArg=10&parallelism=2&allowNonRestoredState=true"
    assert (await http.post(f"/jars/{artifact}/run?{query}")).status_code == 200
    request = service.requests[-1]
    assert request.program.arguments == ("--speed", "10")
    assert request.program.parallelism == 2
    assert request.allow_non_restored is True


async def test_a_disposed_savepoint_is_gone(http: httpx.AsyncClient, job: str) -> None:
    await http.post(f"/jobs/{job}/savepoints", json={"triggerId": TRIGGER})
    checkpoints = (await http.get(f"/jobs/{job}/checkpoints")).json()
    path = checkpoints["latest"]["savepoint"]["external_path"]
    triggered = await http.post("/savepoint-disposal", json={"savepoint-path": path})
    assert triggered.status_code == REQUESTS["58_savepoint_disposal_trigger"][2] == 200
    poll = f"/savepoint-disposal/{triggered.json()['request-id']}"
    await http.get(poll)
    assert (await http.get(poll)).json() == capture("58_savepoint_disposal_poll_completed")
    gone = await http.get("/headwater/savepoints", params={"path": path})
    assert gone.status_code == 410
