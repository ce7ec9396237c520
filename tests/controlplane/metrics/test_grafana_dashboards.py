"""Grafana's dashboards: what is committed is what is described, and every query finds something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.utils import timezone
from influxdb_client import InfluxDBClient

from controlplane.metrics.grafana.__main__ import differing
from controlplane.metrics.grafana.dashboards import DASHBOARDS, JOB_PAGE
from controlplane.metrics.grafana.links import link
from controlplane.metrics.influx import InfluxSettings, InfluxStore
from controlplane.metrics.line_protocol import Point, parse, tags_of
from engine.cluster.answers.influx_reporter import points_of
from engine.elements import Micros
from engine.rest.model.metrics import METRICS, Sample
from fixtures import influxd

NANOS = int(timezone.now().timestamp()) * 10**9
FILLED_IN = "option v = {timeRangeStart: -1h, timeRangeStop: now(), windowPeriod: 10s}\n"
FOLDER = Path(__file__).parents[3] / "deploy" / "grafana" / "dashboards"
ALL = [
    *((one.uid, panel.title, panel.query) for one in DASHBOARDS for panel in one.panels.values()),
    *((one.uid, marks.name, marks.query) for one in DASHBOARDS for marks in one.marks),
    *((one.uid, choice.name, choice.query) for one in DASHBOARDS for choice in one.choices),
]


def test_what_is_committed_is_what_is_described():
    assert differing() == []  # else run `make grafana`


def test_ids_of_dashboards_and_titles_of_panels_are_told_apart():
    assert len({one.uid for one in DASHBOARDS}) == len(DASHBOARDS)
    for one in DASHBOARDS:
        assert len({panel.title for panel in one.panels.values()}) == len(one.panels)
        assert [panel["id"] for panel in one.json()["panels"]] == list(one.panels)
        assert all(
            panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in one.json()["panels"]
        )


def test_a_link_leads_to_the_panel_the_job_and_the_time(monkeypatch):
    monkeypatch.setenv("HEADWATER_GRAFANA_URL", "https://grafana.example/")
    asked = {"job": "a b&c", "panel": "Watermark delay", "minutes": 30}
    assert link(JOB_PAGE, **asked) == (
        "https://grafana.example/d/headwater-job?var-job=a+b%26c&from=now-30m&to=now&viewPanel=2"
    )
    assert link(JOB_PAGE) == "https://grafana.example/d/headwater-job"


@pytest.mark.parametrize("url", ["", "javascript:alert(1)"])
def test_without_a_grafana_there_are_no_links(monkeypatch, url):
    monkeypatch.setenv("HEADWATER_GRAFANA_URL", url)
    assert link(JOB_PAGE) is None


def test_every_query_that_is_committed_is_known_here():
    """So all of them are run below, and `make check-grafana` reads all of them."""
    found = [json.loads(path.read_text()) for path in FOLDER.glob("*.json")]
    committed = [query for one in found for query in queries_of(one)]
    assert sorted(committed) == sorted(query for _, _, query in ALL)


def queries_of(dashboard) -> list[str]:
    return [
        *(target["query"] for panel in dashboard["panels"] for target in panel["targets"]),
        *(marks["target"]["query"] for marks in dashboard["annotations"]["list"]),
        *(choice["query"]["query"] for choice in dashboard["templating"]["list"]),
    ]


@pytest.fixture
def server(influx):
    """InfluxDB with a minute of everything that is written."""
    store = InfluxStore(InfluxSettings(influx, "any:token", "headwater"))
    for bucket, points in everything().items():
        influxd.bucket(influx, bucket)
        store.write(bucket, points)
    store.close()
    return influx


def everything() -> dict[str, list[Point]]:
    """What collector, engines, jobs and the control plane write, by bucket."""
    labels = {"job": "flights", "job_id": "a" * 32, "slot": "0", "task_manager": "tm-1"}
    samples = [Sample(metric, labels, 5.0) for metric in METRICS.values()]
    found: dict[str, list[Point]] = {"engine": [], "metrics": [], "platform": [], "outputs": []}
    for second in range(0, 60, 5):
        at = NANOS - (90 - second) * 10**9
        for purpose, run in (("live", "1"), ("replay", "2")):
            tags = {"job": "flights", "purpose": purpose, "run": run}
            fields = ("in", "out", "delay_ms", "event_ms", "speed", "busy", "bp", "pending")
            found["engine"].append(point("job", tags, fields, at))
            flows = ("in", "out", "busy", "bp", "idle")
            found["engine"].append(point("operator", tags | {"vertex": "v"}, flows, at))
        text = "\n".join(points_of(samples, Micros(at // 1_000)))
        found["metrics"] += parse(text, now_ns=0, precision="us").points
        for name in ("sensors_raw", "sensors_amplified"):
            found["outputs"].append(point(name, {"sensor": "s1"}, ("value",), at))
        found["outputs"].append(point("sensors_sums", {"sensor": "s1"}, ("sum", "n"), at))
    found["platform"] = platform()
    return found


def platform() -> list[Point]:
    at = NANOS - 60 * 10**9
    figures = (
        "operation_queue_age_seconds", "operations_unfinished", "collector_lag_seconds",
        "engines", "engines_away", "jobs_running", "jobs_not_running",
    )  # fmt: skip
    operation = {"job": "flights", "kind": "stop", "state": "succeeded"}
    kinds = ("deploy", "replay", "savepoint", "restart", "failure")
    told = (("text", "it died"), ("title", "Restarted"))
    return [
        point("controlplane", {}, figures, at),
        point("operation", operation, ("duration_seconds",), at),
        point("process", {"process": "7"}, ("socket_clients",), at),
        *(Point("event", (("job", "flights"), ("kind", kind)), told, at) for kind in kinds),
    ]


def point(measurement, tags, fields, at):
    return Point(measurement, tags_of(tags.items()), tuple((f, 1.5) for f in fields), at)


@pytest.mark.integration
def test_every_query_finds_rows_in_a_real_influxdb(server):
    with InfluxDBClient(server, "any:token", org="headwater") as client:
        found = {
            (page, title): answered(client, FILLED_IN + query.replace("${job}", "flights"))
            for page, title, query in ALL
        }
    assert [asked for asked, rows in found.items() if not rows] == []


def answered(client, query) -> list[str]:
    lines = client.query_api().query_raw(query).data.decode().splitlines()
    return [line for line in lines if line and line[0] != "#" and "result,table" not in line]


def test_the_names_that_the_platform_writes_are_those_that_panels_read():
    read = {word for _, _, query in ALL for word in query.split('"')}
    written = {name for one in platform() for name, _ in one.fields}
    assert written <= read | {"title", "text"}
