"""When a rule would have fired, from what is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.alerts.models import AlertRule
from controlplane.alerts.preview import preview
from controlplane.jobs.models import RunFailure
from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.store import ENGINE, series_store
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


def test_what_has_no_history_says_so(running):
    assert preview([running], Measure.NOT_RUNNING, 1, 0, NOW).unknown
