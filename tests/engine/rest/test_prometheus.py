"""What Prometheus reads, by its rules."""

from __future__ import annotations

import re

import httpx
import pytest

from engine.rest.model.cluster import ClusterInfo
from engine.rest.model.jobs import JobDetails, JobStatus, Latency
from engine.rest.model.metrics import COUNTED, LATENCY, METRICS, Kind, Metric, Sample, Scope
from engine.rest.render.metrics import job_metrics
from engine.rest.render.prometheus import name_of, text
from engine.rest.render.samples import samples
from engine.testing import fake_values
from engine.testing.fake_service import FakeService
from engine.testing.fake_values import SOURCE_ID, WINDOW_ID

METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (NaN|[+-]Inf|[-+.0-9e]+)")

DEMO = Metric("demo", Scope.JOB, "demo_seconds", 'Of "x",\nor \\.', Kind.GAUGE, 1e-3)


def test_the_text_is_exactly_so():
    samples = [
        Sample(DEMO, {"job": 'a "b"\n\\', "a": "1"}, 1_500),
        Sample(METRICS[Scope.JOB, "numRestarts"], {"job": "z"}, 2),
        Sample(DEMO, {}, float("nan")),
    ]
    assert text(samples) == (
        '# HELP headwater_job_demo_seconds Of "x",\\nor \\\\.\n'
        "# TYPE headwater_job_demo_seconds gauge\n"
        'headwater_job_demo_seconds{a="1",job="a \\"b\\"\\n\\\\"} 1.5\n'
        "headwater_job_demo_seconds NaN\n"
        "# HELP headwater_job_restarts_total Restarts after failures.\n"
        "# TYPE headwater_job_restarts_total counter\n"
        'headwater_job_restarts_total{job="z"} 2\n'
    )
    assert text([]) == ""


@pytest.mark.parametrize("metric", [*METRICS.values(), COUNTED, LATENCY], ids=name_of)
def test_names_keep_to_the_rules(metric: Metric):
    assert METRIC_NAME.fullmatch(name_of(metric))
    assert name_of(metric).endswith("_total") == (metric.kind is Kind.COUNTER)
    assert metric.help.endswith(".")
    assert ("_ms" in name_of(metric), "milli" in metric.help) == (False, False)


def test_no_two_metrics_have_one_name():
    names = [name_of(metric) for metric in [*METRICS.values(), COUNTED, LATENCY]]
    assert len(names) == len(set(names))


async def test_every_line_of_an_engine_is_well_formed(
    http: httpx.AsyncClient, job: str, service: FakeService
):
    answer = await http.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    body = answer.text
    assert body.endswith("\n")
    family, seen = "", set()
    for line in body.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in seen, "a family is one block"
            seen.add(family)
        elif line.startswith("# TYPE "):
            assert line.split()[2:] in ([family, "counter"], [family, "gauge"])
        else:
            found = SAMPLE.fullmatch(line)
            assert found is not None, line
            assert found[1] == family
    assert f'headwater_job_uptime_seconds{{job="flights",job_id="{job}"}} 54.433' in body
    busy = [line for line in body.splitlines() if line.startswith("headwater_task_busy_ratio{")]
    assert sorted(line.rpartition(" ")[2] for line in busy) == ["0.1", "0.1", "0.15", "0.15"]
    service.fail(job, "bad row")
    assert "headwater_job_" not in (await http.get("/v1/metrics")).text


async def test_what_a_worker_uses_is_told_of_each(http: httpx.AsyncClient, job: str):
    lines = [
        line
        for line in (await http.get("/metrics")).text.splitlines()
        if line.startswith("headwater_worker_memory_resident_bytes{")
    ]
    assert [re.search(r'slot="(\d)"', line)[1] for line in lines] == ["0", "1"]


def test_latencies_of_a_job_are_samples_with_quantiles_and_metrics_with_flinks_names():
    plan = fake_values.plan("flights", 1)
    latency = Latency(SOURCE_ID, WINDOW_ID, 1, dict.fromkeys(("median", "p95", "p99", "max"), 250))
    job = JobDetails(
        "ab", "flights", JobStatus.RUNNING, 1, -1, {}, 1, 8, plan, (), latencies=(latency,)
    )
    lines = text(samples(ClusterInfo("1", "x", ()), [job])).splitlines()
    assert len(lines) == 2 + 4 + 12  # the job manager tells of four things
    assert (
        f'headwater_job_latency_seconds{{job="flights",job_id="ab",quantile="0.99",'
        f'source_id="{SOURCE_ID}",subtask="1",task_id="{WINDOW_ID}"}} 0.25'
    ) in lines
    where = f"source_id.{SOURCE_ID}.operator_id.{WINDOW_ID}.operator_subtask_index.1"
    assert job_metrics(job)[f"latency.{where}.latency_p99"] == 250
