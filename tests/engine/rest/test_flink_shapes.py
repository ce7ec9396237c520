"""Every answer has the shape of the one that a real Flink gave to the same request.

Where we differ, the difference is listed with its reason; a listed difference that is gone fails
too, so the lists can only shrink knowingly.
"""

from __future__ import annotations

import httpx
import pytest
from flink_captures import REQUESTS, capture, differences

from engine.testing.fake_values import SOURCE_ID, WINDOW_ID

SCHEDULED_AT_ONCE = "a subtask is scheduled in the moment in which it is made"
OURS = "our own additions, under one key"
NO_JVM = "a Python process has no garbage collectors to list"
BOTH = "Flink writes a string only because it has no number: NaN"

GETS = {
    "20_overview": "/overview",
    "20_config": "/config",
    "20_v1_jobs": "/v1/jobs",
    "20_jobs_overview": "/jobs/overview",
    "21_job": "/jobs/{job}",
    "21_job_status": "/jobs/{job}/status",
    "22_job_plan": "/jobs/{job}/plan",
    "22_job_config": "/jobs/{job}/config",
    "22_job_exceptions_none": "/jobs/{job}/exceptions",
    "22_job_execution_result_running": "/jobs/{job}/execution-result",
    "23_checkpoints": "/jobs/{job}/checkpoints",
    "23_checkpoints_config": "/jobs/{job}/checkpoints/config",
    "23_checkpoint_details": "/jobs/{job}/checkpoints/details/1",
    "23_checkpoint_details_subtasks_v1": "/jobs/{job}/checkpoints/details/1/subtasks/{window}",
    "24_vertex_v1": "/jobs/{job}/vertices/{window}",
    "24_vertex_watermarks_v0": "/jobs/{job}/vertices/{source}/watermarks",
    "24_vertex_watermarks_v1": "/jobs/{job}/vertices/{window}/watermarks",
    "24_vertex_backpressure_v1_1st": "/jobs/{job}/vertices/{window}/backpressure",
    "24_vertex_taskmanagers_v1": "/jobs/{job}/vertices/{window}/taskmanagers",
    "24_vertex_metrics_list_v1": "/jobs/{job}/vertices/{window}/metrics",
    "24_vertex_subtasks_metrics_list_v1": "/jobs/{job}/vertices/{window}/subtasks/metrics",
    "24_vertex_subtask0_metrics_list_v1": "/jobs/{job}/vertices/{window}/subtasks/0/metrics",
    "25_vertex_metrics_get_v1": "/jobs/{job}/vertices/{window}/metrics?get=0.numRecordsIn",
    "25_vertex_subtasks_metrics_get_v1": (
        "/jobs/{job}/vertices/{window}/subtasks/metrics"
        "?get=numRecordsInPerSecond,busyTimeMsPerSecond&agg=min,max,avg,sum,skew"
    ),
    "25_vertex_subtasks_metrics_get_noagg_v1": (
        "/jobs/{job}/vertices/{window}/subtasks/metrics?get=numRecordsOut"
    ),
    "26_job_metrics_list": "/jobs/{job}/metrics",
    "26_job_metrics_get": "/jobs/{job}/metrics?get=uptime,numRestarts",
    "26_jobs_metrics_agg": "/jobs/metrics?get=uptime,numRestarts&agg=min,max,avg,sum",
    "27_jobmanager_metrics_list": "/jobmanager/metrics",
    "27_jobmanager_metrics_get": "/jobmanager/metrics?get=taskSlotsTotal,numRunningJobs",
    "27_taskmanagers": "/taskmanagers",
    "27_taskmanager": "/taskmanagers/localhost:tm-1-a1b2c3",
    "27_taskmanager_metrics_get": (
        "/taskmanagers/localhost:tm-1-a1b2c3/metrics?get=Status.Process.CPU.Load"
    ),
    "27_taskmanagers_metrics": "/taskmanagers/metrics",
    "11_jars_list": "/jars",
    "12_jar_plan_get": "/jars/{artifact}/plan",
}

_PERCENTILES = ("p50", "p90", "p95", "p99", "p999")
_FIGURES = (
    "alignment.duration",
    "alignment.persisted",
    "alignment.processed",
    "checkpoint_duration.async",
    "checkpoint_duration.sync",
    "checkpointed_size",
    "end_to_end_duration",
    "start_delay",
    "state_size",
)

DIFFERENT: dict[str, dict[str, str]] = {
    "21_job": {
        "extra $.headwater": OURS,
        "extra $.headwater.waiting-for": OURS,
    },
    "23_checkpoints_config": {
        "extra $.headwater": OURS,
        "extra $.headwater.retained": OURS,
        "missing $.changelog_periodic_materialization_interval": "we have no changelog backend",
        "missing $.changelog_storage": "we have no changelog backend",
    },
    "23_checkpoint_details_subtasks_v1": {
        "extra $.subtasks[].headwater": OURS,
        "extra $.subtasks[].headwater.operator-bytes": OURS,
        "extra $.subtasks[].headwater.operator-bytes.daily": OURS,
        **{
            f"type $.summary.{figure}.{percentile}: number": BOTH
            for figure in _FIGURES
            for percentile in _PERCENTILES
        },
    },
    "24_vertex_v1": {
        f"missing $.{place}.CREATED{figure}": SCHEDULED_AT_ONCE
        for place, figures in (
            ("subtasks[].status-duration", ("",)),
            (
                "aggregated.status-duration",
                ("", ".avg", ".max", ".median", ".min", ".p25", ".p75", ".p95", ".sum"),
            ),
        )
        for figure in figures
    },
    "24_vertex_taskmanagers_v1": {
        f"missing $.taskmanagers[].aggregated.status-duration.CREATED{figure}": (SCHEDULED_AT_ONCE)
        for figure in ("", ".avg", ".max", ".median", ".min", ".p25", ".p75", ".p95", ".sum")
    },
    "27_taskmanagers": {},
    "27_taskmanager": {
        f"missing $.metrics.garbageCollectors[]{field}": NO_JVM
        for field in ("", ".count", ".name", ".time")
    },
    "11_jars_list": {},
}

for _name, _prefix in (("27_taskmanagers", "$.taskmanagers[]"), ("27_taskmanager", "$")):
    for _field in (
        "",
        ".metrics",
        ".metrics.Status.Process.CPU.Load",
        ".metrics.Status.Process.Memory.Resident",
        ".pid",
        ".workers",
        ".workers[]",
        ".workers[].job",
        ".workers[].pid",
    ):
        DIFFERENT[_name][f"extra {_prefix}.headwater{_field}"] = OURS


@pytest.mark.parametrize("name", GETS)
async def test_an_answer_has_flinks_shape(
    name: str, http: httpx.AsyncClient, job: str, artifact: str
) -> None:
    path = GETS[name].format(job=job, source=SOURCE_ID, window=WINDOW_ID, artifact=artifact)
    answer = await http.get(path)
    assert answer.status_code == REQUESTS[name][2]
    assert differences(answer.json(), capture(name)) == set(DIFFERENT.get(name, ()))


@pytest.mark.parametrize("name", GETS)
def test_the_captured_request_is_the_one_that_is_compared(name: str) -> None:
    method, recorded, _ = REQUESTS[name]
    assert method == "GET"
    ours = GETS[name].partition("?")[0].removeprefix("/v1").strip("/").split("/")
    theirs = recorded.partition("?")[0].removeprefix("/v1").strip("/").split("/")
    fixed = [part for part in ours if part.isalpha()]
    assert len(ours) == len(theirs)
    assert [part for part in theirs if part.isalpha()] == fixed


async def test_both_prefixes_give_the_same(http: httpx.AsyncClient, job: str) -> None:
    bare, versioned = await http.get("/jobs"), await http.get("/v1/jobs")
    assert bare.json() == versioned.json() == {"jobs": [{"id": job, "status": "RUNNING"}]}


async def test_flinks_command_line_finds_all_it_needs(http: httpx.AsyncClient, job: str) -> None:
    # Even on a GET the command line sends a body, to /v1.
    answer = await http.request("GET", "/v1/jobs/overview", json={})
    listed = answer.json()["jobs"][0]
    for field in ("start-time", "end-time", "duration", "last-modification", "pending-operators"):
        assert isinstance(listed[field], int)
    assert listed["jid"] == job
    assert listed["name"] == "flights"
    assert listed["state"] == "RUNNING"
    assert listed["tasks"]["total"] == 4
