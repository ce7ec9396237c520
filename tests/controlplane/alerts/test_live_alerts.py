"""What open pages hear of alerts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.alerts.actions import acknowledge, add_rule, remove_rule
from controlplane.alerts.evaluation import evaluate
from controlplane.alerts.models import Alert
from controlplane.jobs.models import RunFailure
from controlplane.live import topics
from controlplane.live.fleet import view_of
from controlplane.live.latest import latest_store
from controlplane.live.queries import latest

NOW = timezone.now()
WATCHED = {"measure": "restarts", "threshold": 1, "for_seconds": 0, "severity": "warn"}


@pytest.fixture(autouse=True)
def nothing_said():
    latest_store().forget(topics.parse(topics.ALERTS))


@pytest.fixture
def restarting(running):
    """A job that was restarted a minute ago."""
    RunFailure.objects.create(
        run=running.runs.get(), at=NOW - timedelta(minutes=1), name="E", sentence="disk"
    )
    return running


def row(job):
    return latest(topics.ALERTS).get(str(job.pk))


def test_a_pass_tells_what_fires_and_when_it_looked(restarting, team, alice):
    rule = add_rule(team, restarting, alice, **WATCHED)
    evaluate(NOW)
    evaluate(NOW + timedelta(seconds=10))
    alert = Alert.objects.get()

    assert row(restarting)["firing"] == 1
    assert row(restarting)[f"v{alert.pk}"] == 1
    assert latest(topics.ALERTS)["sum"]["at_ms"] == pytest.approx(
        (NOW.timestamp() + 10) * 1000, abs=1
    )
    rule.delete()
    evaluate(NOW + timedelta(seconds=20))
    assert row(restarting) is None


def test_what_people_do_is_told_at_once(
    restarting, team, alice, django_capture_on_commit_callbacks
):
    rule = add_rule(team, restarting, alice, **WATCHED)
    evaluate(NOW)
    before = row(restarting)["open"]
    with django_capture_on_commit_callbacks(execute=True):
        acknowledge(Alert.objects.get(), alice, NOW)
    assert row(restarting)["open"] != before
    assert row(restarting)["firing"] == 1

    with django_capture_on_commit_callbacks(execute=True):
        remove_rule(rule, alice)
    assert row(restarting)["firing"] == 0


def test_everybody_counts_what_fires_among_their_jobs():
    topic = topics.parse(topics.ALERTS)
    table = {
        "1": {"firing": 2, "open": "a "},
        "2": {"firing": 1, "open": "b "},
        "sum": {"at_ms": 5},
    }
    view = view_of(topic, frozenset({"1"}))
    assert view.whole(table) == {
        "1": {"firing": 2, "open": "a "},
        "sum": {"at_ms": 5, "firing": 2, "open": "a "},
    }
    patch = view.changed({"1": {"firing": 1}, "2": {"firing": 7}})
    assert patch == {"1": {"firing": 1}, "sum": {"at_ms": 5, "firing": 1, "open": "a "}}
    assert view.changed({"1": None})["sum"] == {"at_ms": 5, "firing": 0, "open": ""}


def test_where_nobody_has_looked_yet_no_count_is_told():
    view = view_of(topics.parse(topics.ALERTS), frozenset({"1"}))
    assert view.whole({}) == {"sum": {}}
