"""When a rule would have fired, from what is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.alerts.models import AlertRule
from controlplane.alerts.preview import preview
from controlplane.jobs.models import RunFailure
from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.store import ENGINE, METRICS, series_store
from controlplane.moments import epoch_ms
from controlplane.snapshots.models import Checkpoint, Savepoint

NOW = timezone.now().replace(second=0, microsecond=0)
Measure = AlertRule.Measure


def ago(**span):
    return NOW - timedelta(**span)


@pytest.fixture
def run(running):
    return running.runs.get()


def would(job, measure, threshold, for_seconds=0):
    found = preview([job], measure, threshold, for_seconds, NOW)
    return [(one.from_ms, one.until_ms) for one in found.firings]


def test_restarts_fire_while_there_were_too_many_in_an_hour(run, running):
    for minutes in (300, 290, 280, 30):
        RunFailure.objects.create(run=run, at=ago(minutes=minutes), name="E", sentence="x")
    ((began, ended),) = would(running, Measure.RESTARTS, 3)
    assert began == epoch_ms(ago(minutes=280))
    assert ended == epoch_ms(ago(minutes=240))
    assert len(would(running, Measure.RESTARTS, 1)) == 2
    assert would(running, Measure.RESTARTS, 3, for_seconds=3_600) == []


def test_failed_checkpoints_count_from_the_last_good_one(run, running):
    rows = enumerate(["completed", "failed", "failed", "completed", "failed", "failed"])
    for number, status in rows:
        Checkpoint.objects.create(
            run=run,
            engine_checkpoint_id=number,
            status=status,
            trigger_at=ago(minutes=60 - number * 10),
        )
    now_firing, earlier = would(running, Measure.CHECKPOINTS_FAILED, 2)
    assert now_firing == (epoch_ms(ago(minutes=10)), None)
    assert earlier == (epoch_ms(ago(minutes=40)), epoch_ms(ago(minutes=30)))
    assert (
        would(running, Measure.CHECKPOINT_AGE, 20 * 60 + 60)
        == [
            (epoch_ms(ago(minutes=39)), epoch_ms(ago(minutes=30))),
            (epoch_ms(ago(minutes=9)), None),
        ][::-1]
    )


def test_savepoints_grow_old(running):
    Savepoint.objects.create(job=running, origin="manual", completed_at=ago(hours=50))
    ((began, ended),) = would(running, Measure.SAVEPOINT_AGE, 86_400)
    assert (began, ended) == (epoch_ms(ago(hours=26)), None)


def test_delays_come_from_the_series_store(running, settings, tmp_path):
    settings.HEADWATER_HOME = tmp_path
    tags = tags_of([("job", "flights"), ("run", "1"), ("purpose", "live")])
    points = [
        Point("job", tags, (("delay_ms", 90_000.0),), epoch_ms(ago(minutes=n)) * 1_000_000)
        for n in range(100, 90, -1)
    ] + [Point("job", tags, (("delay_ms", 5.0),), epoch_ms(ago(minutes=80)) * 1_000_000)]
    series_store().write(ENGINE, points)
    ((began, ended),) = would(running, Measure.WATERMARK_DELAY, 60, 120)
    series_store().close()
    assert began == epoch_ms(ago(minutes=98))
    # Nothing is known for ten minutes, and then it is well, once: not long enough to be over.
    assert ended is None


def test_a_recovery_point_is_played_against_the_objective_of_today(run, running):
    assert (
        "set one in its settings" in preview([running], Measure.RECOVERY_POINT, 1, 0, NOW).unknown
    )
    running.settings["recovery_point_objective_s"] = 600
    for number, minutes in enumerate((90, 60)):
        Checkpoint.objects.create(
            run=run,
            engine_checkpoint_id=number,
            status="completed",
            trigger_at=ago(minutes=minutes),
        )
    Savepoint.objects.create(job=running, origin="manual", taken_at=ago(minutes=30))
    assert would(running, Measure.RECOVERY_POINT, 60) == [
        (epoch_ms(ago(minutes=19)), None),
        (epoch_ms(ago(minutes=49)), epoch_ms(ago(minutes=30))),
        (epoch_ms(ago(minutes=79)), epoch_ms(ago(minutes=60))),
    ]


def test_dropped_points_count_for_an_hour_and_a_counter_may_begin_anew(running, settings, tmp_path):
    settings.HEADWATER_HOME = tmp_path
    assert preview([running], Measure.POINTS_DROPPED, 1, 0, NOW).unknown
    both = preview([running, running], Measure.POINTS_DROPPED, 1, 0, NOW)
    assert both.unknown.endswith("choose one job")
    values = {600: 7.0, 500: 7.0, 300: 9.0, 200: 4.0, 100: 4.0}
    points = [
        Point(
            "headwater_jobmanager",
            (),
            (("reporterPointsDropped", value),),
            epoch_ms(ago(minutes=minutes)) * 1_000_000,
        )
        for minutes, value in values.items()
    ]
    series_store().write(METRICS, points)
    found = would(running, Measure.POINTS_DROPPED, 2)
    more = would(running, Measure.POINTS_DROPPED, 4)
    series_store().close()
    assert found[1] == (epoch_ms(ago(minutes=300)), epoch_ms(ago(minutes=239)))
    assert [began for began, _ in more] == [epoch_ms(ago(minutes=n)) for n in (200, 600)]


@pytest.mark.parametrize("measure", [Measure.NOT_RUNNING, Measure.SAVEPOINT_UNREADABLE])
def test_what_has_no_history_says_so(measure, running):
    assert preview([running], measure, 1, 0, NOW).unknown
