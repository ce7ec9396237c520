"""Watching many jobs in one request: each part is what its own route says."""

from __future__ import annotations

import httpx

from engine.testing.fake_values import SOURCE_ID
from openapi_answers import answered, told

PARTS = {
    "checkpoints": "/jobs/{job}/checkpoints",
    "exceptions": "/jobs/{job}/exceptions?maxExceptions=5",
    "progress": "/headwater/jobs/{job}/progress",
    "metrics": "/jobs/{job}/metrics?get=numRestarts,uptime",
}
NAMES = "numRestarts,uptime,numRecordsOutPerSecond,busyTimeMsPerSecond"


async def watch(http: httpx.AsyncClient, jobs: str) -> httpx.Response:
    return await http.get(f"/headwater/watch?jobs={jobs}&get={NAMES}&maxExceptions=5")


async def test_each_part_is_what_its_own_route_says(http: httpx.AsyncClient, job: str) -> None:
    answer = await watch(http, job)
    (found,) = answer.json()["jobs"]
    for part, path in PARTS.items():
        assert found[part] == (await http.get(path.format(job=job))).json(), part
    details = (await http.get(f"/jobs/{job}")).json()
    volatile = {"now", "duration", "vertices"}
    assert {k: v for k, v in found["job"].items() if k not in volatile} == {
        k: v for k, v in details.items() if k not in volatile
    }
    assert answered(told("/headwater/watch", "GET"), answer) == []


async def test_metrics_of_operators_come_with_those_of_their_vertex(
    http: httpx.AsyncClient, job: str
) -> None:
    (found,) = (await watch(http, job)).json()["jobs"]
    names = {metric["id"].rpartition(".")[2] for metric in found["vertices"][SOURCE_ID]}
    assert names == {"numRecordsOutPerSecond", "busyTimeMsPerSecond"}
    path = f"/jobs/{job}/vertices/{SOURCE_ID}/subtasks/metrics?agg=min,max,avg,sum&get="
    for metric in found["vertices"][SOURCE_ID]:
        assert (await http.get(path + metric["id"])).json() == [metric]


async def test_jobs_that_are_not_known_are_left_out(http: httpx.AsyncClient, job: str) -> None:
    found = (await watch(http, f"{'0' * 32},{job}")).json()["jobs"]
    assert [one["job"]["jid"] for one in found] == [job]
    assert (await watch(http, "")).json() == {"jobs": []}


async def test_checkpoints_that_had_ended_before_are_left_out(
    http: httpx.AsyncClient, job: str
) -> None:
    await http.post(f"/jobs/{job}/checkpoints", json={})
    (whole,) = (await watch(http, job)).json()["jobs"]
    newest, oldest = whole["checkpoints"]["history"]
    ended = newest["trigger_timestamp"] + newest["end_to_end_duration"]
    for since, kept in ((0, [newest, oldest]), (ended, [newest]), (ended + 1, [])):
        answer = await http.get(f"/headwater/watch?jobs={job}&since={since}")
        (found,) = answer.json()["jobs"]
        assert found["checkpoints"]["history"] == kept
        assert found["checkpoints"]["counts"] == whole["checkpoints"]["counts"]
