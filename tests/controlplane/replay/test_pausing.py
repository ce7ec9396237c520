"""The pause of a promotion: expected from what was, measured, and not known when nothing was."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from controlplane.operations.models import Operation
from controlplane.replay.actions import promote_replay
from controlplane.replay.models import Replay
from controlplane.replay.pausing import expected_pause
from operation_cases import caught_up


@pytest.fixture
def replay(flights, alice, engine, drive):
    return caught_up(flights, alice, engine, drive)


def promoted_before(replay, seconds: int) -> None:
    Replay.objects.create(
        number=90 + seconds,
        job=replay.job,
        savepoint=replay.savepoint,
        version=replay.version,
        status=Replay.Status.PROMOTED,
        promoted_at=replay.created_at - timedelta(days=seconds),
        stood_still_ms=1000 * seconds,
    )


def test_without_a_history_it_is_not_known(replay):
    assert expected_pause(replay).text == (
        "not known: nothing of flights was promoted or upgraded before"
    )


def test_it_is_expected_from_the_promotions_before(replay):
    for seconds in (3, 5):
        promoted_before(replay, seconds)
    assert expected_pause(replay).text == "3 s to 5 s, as the last 2 promotions of flights took"


def test_of_a_job_that_was_only_upgraded_the_exchange_comes_on_top(replay):
    deploy = Operation.objects.filter(kind="deploy").first()
    Operation.objects.filter(pk=deploy.pk).update(
        kind="upgrade", ended_at=deploy.created_at + timedelta(seconds=7)
    )
    assert expected_pause(replay).text.startswith("7 s, as the last upgrade of flights took; exch")


def test_expected_and_measured_are_side_by_side(replay, alice, drive, client):
    promoted_before(replay, 3)
    drive(promote_replay(replay, alice))
    client.force_login(alice)
    text = client.get(reverse("dashboard:replay", args=[replay.pk])).content.decode()
    assert "Expected pause: 3 s, as the last promotion of flights took." in text
    assert "No version ran for " in text
    assert "at the cut-over, as measured." in text
