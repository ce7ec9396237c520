"""Passes over rules: what becomes of alerts, and who is told; a killed pass changes nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.alerts import evaluation
from controlplane.alerts.actions import (
    acknowledge,
    add_route,
    add_rule,
    mute,
    remove_rule,
    set_rule_enabled,
)
from controlplane.alerts.evaluation import evaluate
from controlplane.alerts.measures import measure_all, stood_still
from controlplane.alerts.models import Alert, Delivery, Route
from controlplane.audit.models import AuditEntry
from controlplane.jobs.models import Run, RunFailure
from controlplane.live import topics
from controlplane.live.latest import latest_store
from controlplane.live.publish import publish
from controlplane.metrics.line_protocol import Point
from controlplane.metrics.store import METRICS, PLATFORM, series_store
from controlplane.moments import epoch_ms
from controlplane.snapshots.models import Checkpoint, Savepoint
from large_history import fill

NOW = timezone.now().replace(microsecond=0)


def at(seconds):
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def run(running):
    Run.objects.update(started_at=at(-10_000), state_since=at(-10_000))
    return running.runs.get()


@pytest.fixture
def rule(running, team, alice):
    """Restarts, twice an hour, for a minute."""
    return watch(team, alice, "restarts", 2, 60)


@pytest.fixture
def series(settings, tmp_path):
    """Writes the points of a counter: seconds to its value."""
    settings.HEADWATER_HOME = tmp_path

    def write(bucket, measurement, field, values):
        series_store().write(
            bucket,
            [
                Point(measurement, (), ((field, float(value)),), epoch_ms(at(seconds)) * 1_000_000)
                for seconds, value in values.items()
            ],
        )

    yield write
    series_store().close()


def watch(team, alice, measure, threshold, for_seconds=0, job=None, severity="warn"):
    return add_rule(
        team,
        job,
        alice,
        measure=measure,
        threshold=threshold,
        for_seconds=for_seconds,
        severity=severity,
    )


def route_of(team, alice, target):
    """A route that was there before all that happens."""
    route = add_route(team, alice, kind="email", target=target)
    Route.objects.filter(pk=route.pk).update(created_at=at(-1_000))


def fail(run, *moments):
    for seconds in moments:
        RunFailure.objects.create(run=run, at=at(seconds), name="E", sentence="disk")


def passes(until, begin=0, every=10):
    for seconds in range(begin, until + 1, every):
        evaluate(at(seconds))


def states():
    return [(alert.state, alert.job.name) for alert in Alert.objects.order_by("pk")]


def test_an_alert_is_pending_then_fires_then_is_over(run, rule):
    fail(run, -20, -10)
    evaluate(at(0))
    assert states() == [("pending", "flights")]
    passes(60)
    alert = Alert.objects.get()
    assert (alert.state, alert.since, alert.fired_at) == ("firing", at(0), at(60))
    passes(3_700, begin=3_590)  # the first failure is more than an hour old
    alert.refresh_from_db()
    assert (alert.state, alert.well_since, alert.resolved_at) == ("resolved", at(3_590), at(3_650))


def test_a_job_that_is_well_has_no_alert(run, rule):
    fail(run, -20)
    passes(120)
    assert states() == []


def test_a_rule_of_one_job_leaves_the_others(run, team, alice, lab):
    (other,) = fill(team, lab, jobs=1, checkpoints=0, savepoints=0)
    watch(team, alice, "restarts", 0, job=other)
    evaluate(at(0))
    assert states() == [("firing", "job-000")]


def test_an_evaluator_that_is_killed_in_a_pass_changes_nothing(run, rule, team, alice, monkeypatch):
    class Killed(BaseException):
        pass

    def die(_now):
        raise Killed

    route_of(team, alice, "ops@example.org")
    fail(run, -20, -10)
    for seconds in range(0, 130, 10):
        with monkeypatch.context() as patched:
            patched.setattr(evaluation, "_tell", die)
            with pytest.raises(Killed), transaction.atomic():
                evaluate(at(seconds))
        evaluate(at(seconds))
        evaluate(at(seconds))
    alert = Alert.objects.get()
    assert (alert.state, alert.since, alert.fired_at) == ("firing", at(0), at(60))
    assert Delivery.objects.count() == 1


def test_news_go_to_each_route_of_the_team_once(run, rule, team, alice):
    for target in ("ops@example.org", "boss@example.org"):
        route_of(team, alice, target)
    fail(run, -20, -10)
    passes(100)
    told = Delivery.objects.order_by("pk").values_list("route__target", "news")
    assert list(told) == [("ops@example.org", "firing"), ("boss@example.org", "firing")]
    passes(3_700, begin=3_590)
    assert list(told.all())[2:] == [
        ("ops@example.org", "resolved"),
        ("boss@example.org", "resolved"),
    ]


def test_a_muted_alert_is_told_when_its_mute_ends(run, rule, team, alice):
    route_of(team, alice, "ops@example.org")
    fail(run, -20, -10)
    evaluate(at(0))
    mute(Alert.objects.get(), alice, 10, "known", at(0))
    passes(590)
    assert Alert.objects.get().state == "firing"
    assert Delivery.objects.count() == 0
    evaluate(at(600))
    assert Delivery.objects.get().news == "firing"


def test_what_people_do_is_audited(run, rule, alice):
    fail(run, -20, -10)
    passes(60)
    acknowledge(Alert.objects.get(), alice, at(70))
    mute(Alert.objects.get(), alice, 5, "deploy", at(70))
    remove_rule(rule, alice)
    done = AuditEntry.objects.filter(action__startswith="alert").order_by("pk")
    assert [entry.action for entry in done] == [
        "alert_rule.create",
        "alert.acknowledge",
        "alert.mute",
        "alert_rule.remove",
    ]
    assert done[2].reason == "deploy"


def test_a_rule_that_rests_ends_its_alerts(run, rule, alice):
    fail(run, -20, -10)
    passes(60)
    set_rule_enabled(rule, alice, enabled=False, reason="noisy")
    evaluate(at(70))
    assert states() == [("resolved", "flights")]
    entry = AuditEntry.objects.get(action="alert_rule.pause")
    assert (entry.reason, entry.after) == ("noisy", {"enabled": False})


def test_each_measure_says_what_it_is(run, running, alice):
    for number, (status, seconds) in enumerate(
        [("completed", -400), ("failed", -300), ("failed", -200), ("in_progress", -10)]
    ):
        Checkpoint.objects.create(
            run=run, engine_checkpoint_id=number + 1, status=status, trigger_at=at(seconds)
        )
    Savepoint.objects.create(job=running, origin="manual", status="completed", completed_at=at(-50))
    publish(topics.FLEET, {str(running.pk): {"delay_ms": 2_500, "bp": 40.0}})
    values = measure_all([running.pk], NOW)[running.pk]
    latest_store().forget(topics.parse(topics.FLEET))
    assert values == {
        "checkpoint_age": 400,
        "checkpoints_failed": 2,
        "watermark_delay": 2.5,
        "restarts": 0,
        "backpressure": 40.0,
        "savepoint_age": 50,
        "replay_stalled": None,
        "not_running": 0,
        "recovery_point": 0,
        "savepoint_unreadable": 0,
    }
    Run.objects.update(state="RESTARTING", state_since=at(-30))
    values = measure_all([running.pk], NOW)[running.pk]
    assert (values["checkpoint_age"], values["not_running"]) == (None, 30)


def measured(job, measure):
    return measure_all([job.pk], NOW)[job.pk][measure]


def test_a_recovery_point_is_behind_by_what_is_beyond_the_objective(run, running):
    running.settings["recovery_point_objective_s"] = 300
    running.save(update_fields=["settings"])
    assert measured(running, "recovery_point") == 10_000 - 300  # nothing to start from at all
    Savepoint.objects.create(job=running, origin="manual", status="completed", taken_at=at(-1_000))
    assert measured(running, "recovery_point") == 700
    Checkpoint.objects.create(
        run=run, engine_checkpoint_id=1, status="completed", trigger_at=at(-300)
    )
    assert measured(running, "recovery_point") == 0
    Checkpoint.objects.update(trigger_at=at(-301))
    assert measured(running, "recovery_point") == 1
    type(running).objects.update(desired_state="stopped")
    assert measured(running, "recovery_point") == 0


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"verdict": "damaged"}, 1),
        ({"verdict": "unreadable"}, 1),
        ({"missing_since": NOW}, 1),
        ({"missing_since": NOW, "verdict": "damaged"}, 1),
        ({"verdict": "whole"}, 0),
        ({"verdict": ""}, 0),
        ({"verdict": "damaged", "status": "deleted"}, 0),
    ],
)
def test_savepoints_that_cannot_be_read_are_counted(running, fields, count):
    Savepoint.objects.create(job=running, origin="manual", **{"status": "completed", **fields})
    assert measured(running, "savepoint_unreadable") == count


def test_dropped_points_are_told_once_for_the_whole_installation(running, team, alice, series):
    with pytest.raises(Refused, match=r"counted for the whole installation.*choose one job"):
        watch(team, alice, "points_dropped", 1)
    watch(team, alice, "points_dropped", 5, job=running)
    series(METRICS, "headwater_jobmanager", "reporterPointsDropped", {-9_000: 70, -60: 72})
    evaluate(NOW)
    assert states() == []
    series(PLATFORM, "process", "points_refused", {-30: 3})
    evaluate(NOW)
    assert Alert.objects.get().value == 5


def test_a_replay_that_never_moved_stands_still_since_its_start():
    assert stood_still([]) == 0
    assert stood_still([[0, None, 5]]) == 0
    assert stood_still([[0, 7, 5], [90_000, 7, 6]]) == 90


def test_more_jobs_take_no_more_queries(team, lab, alice, django_assert_max_num_queries):
    for measure in ("checkpoint_age", "restarts", "backpressure"):
        watch(team, alice, measure, 1e9)
    fill(team, lab, jobs=60, checkpoints=300, savepoints=1)
    with django_assert_max_num_queries(20):
        evaluate(at(0))
