"""The control plane measures itself, by the path of every other point, and for Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.backends.models import Cluster
from controlplane.jobs.models import Run, RunFailure
from controlplane.metrics.keeping import LOST, Keeping
from controlplane.metrics.line_protocol import Point
from controlplane.metrics.platform import gauges, platform_points
from controlplane.metrics.self_measure import COUNTERS, measures
from controlplane.metrics.store import series_store
from controlplane.metrics.views import token_digest
from controlplane.operations.models import Operation

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

pytestmark = pytest.mark.django_db


@pytest.fixture
def points_home(settings, tmp_path):
    settings.HEADWATER_HOME = tmp_path
    yield tmp_path
    series_store().close()


def figures(now=NOW):
    return {gauge.name: gauge.value for gauge in gauges(now)}


def an_operation(job, key, **fields):
    fields = {"kind": "stop", "scope": key, "deadline": NOW, "not_before": NOW - MINUTE} | fields
    return Operation.objects.create(job=job, idempotency_key=key, **fields)


def test_the_age_of_the_queue_is_that_of_what_no_worker_has(flights):
    assert figures()["operation_queue_age_seconds"] == 0
    an_operation(flights, "a", lease_until=NOW + MINUTE, not_before=NOW - 9 * MINUTE)
    an_operation(flights, "b")
    an_operation(flights, "c", not_before=NOW + MINUTE)
    assert figures()["operation_queue_age_seconds"] == 60
    assert figures()["operations_unfinished"] == 3


def test_the_collector_lags_behind_the_engine_it_has_not_heard_of(flights):
    Cluster.objects.update(last_seen=NOW - 2 * MINUTE, status=Cluster.Status.AWAY)
    assert figures()["collector_lag_seconds"] == 120
    assert figures()["engines_away"] == 1


def test_what_happened_is_one_point_however_often_it_is_told(flights, points_home):
    run = Run.objects.create(
        job=flights,
        version=flights.versions.get(),
        cluster=Cluster.objects.get(),
        engine_job_id="a" * 32,
        state_since=NOW,
    )
    Run.objects.update(started_at=NOW - MINUTE)
    RunFailure.objects.create(run=run, at=NOW, name="x", sentence="a <b>worker</b> died")
    an_operation(flights, "a", ended_at=NOW, state="succeeded")
    Operation.objects.update(created_at=NOW - MINUTE)
    for late in (0, 1, 2):
        assert series_store().write("platform", platform_points(NOW + late * MINUTE)) == []
    events = series_store().query("platform", "event", "title")
    assert {(one.tags["kind"], len(one.points)) for one in events} == {
        ("deploy", 1),
        ("restart", 1),
    }
    (took,) = series_store().query("platform", "operation", "duration_seconds")
    assert [value for _, value in took.points] == [60.0]
    assert took.tags == {"job": flights.name, "kind": "stop", "state": "succeeded"}


def test_points_that_no_store_takes_are_counted_and_told_once(points_home, monkeypatch, caplog):
    monkeypatch.setenv("HEADWATER_INFLUX_URL", "http://127.0.0.1:9")
    before = measures().look().get(LOST, 0)
    keeping = Keeping()
    for _ in range(2):
        keeping.keep("engine", [Point("m", (), (("f", 1.0),), 1)])
    assert measures().look()[LOST] == before + 2
    assert caplog.text.count("are lost until this works again") == 1
    series_store().close()
    monkeypatch.delenv("HEADWATER_INFLUX_URL")
    keeping.keep("engine", [Point("m", (), (("f", 1.0),), 1)])
    assert measures().look()[LOST] == before + 2


def test_prometheus_reads_all_of_it_with_the_token(flights, monkeypatch, settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    monkeypatch.setenv("HEADWATER_POINTS_TOKEN_SHA256", token_digest("right"))
    assert Client().get("/metrics").status_code == 401
    answer = Client().get("/metrics", headers={"Authorization": "Bearer right"})
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.content.decode().splitlines()
    names = {line.split(" ")[0] for line in lines if not line.startswith("#")}
    assert {f"headwater_controlplane_{one.name}" for one in gauges(timezone.now())} < names
    assert len(names) == len(gauges(timezone.now())) + len(COUNTERS)
    assert sum(line.startswith("# TYPE") for line in lines) == len(names)
