"""Whether a replay can be promoted: the page, the API and the operation give the same answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from controlplane.access.errors import Refused
from controlplane.jobs import actions as jobs
from controlplane.replay.actions import promote_replay
from controlplane.replay.models import Difference, Replay, ReplayOutput
from controlplane.replay.readiness import promotion, rollback
from operation_cases import caught_up

MARCH = datetime(2013, 3, 1, tzinfo=UTC)


@pytest.fixture
def replay(flights, alice, engine, drive):
    return caught_up(flights, alice, engine, drive)


def page(client, alice, replay) -> str:
    client.force_login(alice)
    return client.get(reverse("dashboard:replay", args=[replay.pk])).content.decode()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"discards": True}, "it writes nothing: a dry run; start another replay, with outputs"),
        ({"until": MARCH}, "it ends by itself; start another replay, without an end"),
        (
            {"status": "replaying"},
            "it is replaying; wait until it has caught up: at most what the live job covers in 5 s "
            "behind it, for 5 s",
        ),
        ({"status": "abandoned"}, "it is abandoned"),
    ],
)
def test_what_hinders_it_is_told_alike_and_the_button_is_disabled(
    replay, alice, client, changed, sentence
):
    Replay.objects.update(**changed)
    replay.refresh_from_db()
    whole = f"{replay} cannot be promoted: {sentence}"
    assert promotion(replay).why_not == whole
    with pytest.raises(Refused) as refused:
        promote_replay(replay, alice)
    assert refused.value.message == whole
    text = page(client, alice, replay)
    assert 'data-open="promote"' not in text
    assert (f'disabled title="{whole}."' in text) is not replay.is_terminal


def test_nothing_is_taken_the_place_of_that_does_not_run(replay, flights, alice, drive):
    drive(jobs.stop(flights, alice))
    with pytest.raises(Refused, match=r"flights is not running: .*; start it first"):
        promote_replay(replay, alice)


def test_what_nobody_accepted_is_one_condition_of_seven(replay, alice, client):
    output = ReplayOutput.objects.create(replay=replay, uid="daily", name="daily", hours=[[0] * 5])
    for number in range(2):
        fields = {"verdict": "changed", "fields": [str(number)], "rows": 3, "first_seen": MARCH}
        Difference.objects.create(output=output, **fields)
    answer = promotion(replay)
    assert [one.title for one in answer.open] == ["Differences reviewed"]
    assert answer.open[0].text == "2 kinds of differences are not accepted"
    assert "6 of 7 met" in page(client, alice, replay)
    Difference.objects.update(accepted_at=MARCH)
    assert promotion(replay).ok
    assert 'data-open="promote"' in page(client, alice, replay)


def test_a_promoted_one_says_why_it_cannot_be_rolled_back(replay, flights, alice, drive, client):
    assert not rollback(replay).ok
    drive(promote_replay(replay, alice))
    replay.refresh_from_db()
    assert rollback(replay).ok
    flights.savepoints.update(missing_since=MARCH)
    replay.refresh_from_db()
    assert "its files are gone since 01 Mar" in rollback(replay).why_not
    text = page(client, alice, replay)
    assert 'data-open="roll-back"' not in text
    assert "its files are gone since 01 Mar" in text
