"""What is refused: Flink's status codes where it has good ones, and always one sentence."""

from __future__ import annotations

import httpx
import pytest

from engine.rest.app import create_app
from engine.testing.fake_service import FakeService
from flink_captures import REQUESTS

UNKNOWN = "0" * 32

AS_IN_FLINK = {
    "40_err_job_unknown": ("GET", f"/jobs/{UNKNOWN}", None),
    "40_err_job_badid": ("GET", "/jobs/notanid", None),
    "40_err_vertex_unknown": ("GET", f"/jobs/{{job}}/vertices/{UNKNOWN}", None),
    "40_err_ckpt_unknown": ("GET", "/jobs/{job}/checkpoints/details/99999", None),
    "40_err_ckpt_badid": ("GET", "/jobs/{job}/checkpoints/details/abc", None),
    "40_err_route": ("GET", "/no/such/route", None),
    "40_err_method": ("DELETE", "/jobs/{job}", None),
    "40_err_cancel_badmode": ("PATCH", "/jobs/{job}?mode=foo", None),
    "40_err_query_bad": ("GET", "/jobs/{job}/exceptions?maxExceptions=abc", None),
    "41_err_jar_upload_nobody": ("POST", "/jars/upload", None),
    "41_err_jar_run_badpar": ("POST", "/jars/{artifact}/run", b'{"parallelism": 0}'),
    "31_savepoint_poll_unknown": ("GET", f"/jobs/{{job}}/savepoints/{UNKNOWN}", None),
    "31_savepoint_bad_json": ("POST", "/jobs/{job}/savepoints", b"{not json"),
    "31_savepoint_bad_format": ("POST", "/jobs/{job}/savepoints", b'{"formatType": "WRONG"}'),
}


def sentence(answer: httpx.Response) -> str:
    """The only sentence of a refusal."""
    (only,) = answer.json()["errors"]
    assert "\n" not in only
    assert not only.endswith(".")
    return str(only)


@pytest.mark.parametrize("name", AS_IN_FLINK)
async def test_a_refusal_has_flinks_status(
    name: str, http: httpx.AsyncClient, job: str, artifact: str
) -> None:
    method, path, content = AS_IN_FLINK[name]
    answer = await http.request(method, path.format(job=job, artifact=artifact), content=content)
    assert answer.status_code == REQUESTS[name][2]
    assert sentence(answer)


@pytest.mark.parametrize(
    ("method", "path", "flinks", "ours"),
    [
        # Flink calls these an internal error, or a bad request; nothing was found, that is all.
        ("GET", "/taskmanagers/nope", "40_err_tm_unknown", 404),
        ("POST", "/jars/nope.py/run", "40_err_jar_unknown_run", 404),
        ("DELETE", "/jars/nope.py", "40_err_jar_delete_unknown", 404),
    ],
)
async def test_a_status_differs_from_flinks_on_purpose(
    method: str, path: str, flinks: str, ours: int, http: httpx.AsyncClient
) -> None:
    answer = await http.request(method, path)
    assert answer.status_code == ours != REQUESTS[flinks][2]
    assert sentence(answer)


async def test_an_unknown_job_has_no_metrics(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"/jobs/{UNKNOWN}/metrics")
    assert (answer.status_code, answer.json()) == (200, [])


async def test_an_unknown_metric_is_left_out(http: httpx.AsyncClient, job: str) -> None:
    assert (await http.get(f"/jobs/{job}/metrics?get=nope")).json() == []


async def test_an_unknown_vertex_has_no_backpressure_figures(
    http: httpx.AsyncClient, job: str
) -> None:
    answer = await http.get(f"/jobs/{job}/vertices/{UNKNOWN}/backpressure")
    assert (answer.status_code, answer.json()) == (200, {"status": "deprecated"})


async def test_a_job_id_is_used_once(http: httpx.AsyncClient, job: str, artifact: str) -> None:
    answer = await http.post(f"/jars/{artifact}/run", json={"jobId": job})
    assert answer.status_code == 409
    assert "exists already" in sentence(answer)


async def test_an_ended_job_takes_no_savepoint(http: httpx.AsyncClient, job: str) -> None:
    await http.patch(f"/jobs/{job}?mode=cancel")
    answer = await http.post(f"/jobs/{job}/savepoints", json={})
    assert answer.status_code == 409
    assert "is not running: it is CANCELED" in sentence(answer)


async def test_a_finished_job_cannot_be_cancelled(
    http: httpx.AsyncClient, job: str, service: FakeService
) -> None:
    service.fail(job, "no more")
    answer = await http.patch(f"/jobs/{job}?mode=cancel")
    assert answer.status_code == REQUESTS["51_cancel_of_finished"][2] == 409


async def test_an_unknown_savepoint_starts_nothing(
    http: httpx.AsyncClient, artifact: str, service: FakeService
) -> None:
    answer = await http.post(f"/jars/{artifact}/run", json={"savepointPath": "/nowhere"})
    assert answer.status_code == 410
    assert sentence(answer) == "snapshot is not there: no folder /nowhere; check the path"
    assert service.known == {}


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"parallelism": "two"}, "parallelism"),
        ({"parallelism": True}, "parallelism"),
        ({"programArgsList": "--speed 1"}, "programArgsList"),
        ({"programArgsList": [1]}, "programArgsList"),
        ({"jobId": "../../etc"}, "jobId"),
        ({"savepointPath": 7}, "savepointPath"),
        ({"claimMode": "LEGACY"}, "claimMode"),
        ({"flinkConfiguration": {"a": {}}}, "setting a"),
        ({"allowNonRestoredState": "yes"}, "allowNonRestoredState"),
        ([], "request body"),
    ],
)
async def test_a_field_of_another_type_is_named(
    body: object, names: str, http: httpx.AsyncClient, artifact: str
) -> None:
    answer = await http.post(f"/jars/{artifact}/run", json=body)
    assert answer.status_code == 400
    assert names in sentence(answer)


@pytest.mark.parametrize("path", ["subtasks=x", "subtasks=1-x", "agg=median&get=numRecordsIn"])
async def test_a_query_of_another_form_is_named(
    path: str, http: httpx.AsyncClient, job: str
) -> None:
    vertex = "3c5e29a5caf3389602b723bb1ef03912"
    answer = await http.get(f"/jobs/{job}/vertices/{vertex}/subtasks/metrics?{path}")
    assert answer.status_code == 400
    assert path.partition("=")[0] in sentence(answer)


async def test_a_fault_of_ours_is_one_sentence_too(service: FakeService) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    service.jobs = broken  # type: ignore[method-assign, assignment]
    transport = httpx.ASGITransport(create_app(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/jobs")
    assert answer.status_code == 500
    assert sentence(answer) == ("internal error: ZeroDivisionError; see the log of the job manager")
