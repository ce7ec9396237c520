"""The page of a replay: what was compared, what is to be accepted, and what may be done."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from controlplane.operations.models import Operation
from controlplane.replay.models import Difference, Replay, ReplayOutput

MARCH = datetime(2013, 3, 1, tzinfo=UTC)
HOUR_MS = 3_600_000


@pytest.fixture
def output(replay, alice):
    """Six rows compared over two hours, of which two differ; and an output that cannot be."""
    begin = int(MARCH.timestamp() * 1000)
    made = ReplayOutput.objects.create(
        replay=replay,
        uid="daily",
        name="daily-files",
        kind="parquet",
        beside="/out@r-1",
        compared_to=MARCH,
        compared_at=MARCH,
        hours=[[begin, 3, 1, 0, 0], [begin + HOUR_MS, 1, 0, 1, 0]],
    )
    ReplayOutput.objects.create(replay=replay, uid="told", name="told", why_not="it is <print>ed")
    example = {
        "at": begin * 1000,
        "keys": {"carrier": "<b>AA</b>", "window_start": {"ms": begin}},
        "old": {"mean_delay": 1.5},
        "new": {"mean_delay": None},
    }
    Difference.objects.create(
        output=made,
        verdict="changed",
        fields=["mean_delay"],
        rows=1,
        first_seen=MARCH,
        examples=[example],
    )
    return made


def page(as_, person, replay) -> str:
    return as_(person).get(reverse("dashboard:replay", args=[replay.pk])).content.decode()


def test_it_shows_counts_examples_and_why_an_output_is_left_out(as_, alice, replay, output):
    text = page(as_, alice, replay)
    assert "6" in text
    assert '<i class="differ"' in text
    assert "<del>1.5</del> <ins>–</ins>" in text
    assert "carrier &lt;b&gt;AA&lt;/b&gt;, window_start 2013-03-01 00:00" in text
    assert "Not compared: it is &lt;print&gt;ed." in text
    assert "1 of 1 open" in text


def test_accepting_is_done_by_whoever_may_operate_and_opens_the_way(
    as_, alice, bob, replay, output
):
    accept = reverse("dashboard:accept_difference", args=[replay.pk])
    fields = {"difference": Difference.objects.get().pk}
    assert as_(bob).post(accept, fields).status_code == 403
    Replay.objects.update(status="caught_up", caught_up_at=MARCH)
    assert 'data-open="promote"' not in page(as_, alice, replay)
    assert as_(alice).post(accept, fields).status_code == 302
    text = page(as_, alice, replay)
    assert 'Accepted<span class="only-wide"> by alice<' in text
    assert 'data-open="promote"' in text


def test_a_difference_of_another_replay_is_not_there(as_, alice, replay, output):
    other = Replay.objects.create(
        number=9, job=replay.job, savepoint=replay.savepoint, version=replay.version
    )
    accept = reverse("dashboard:accept_difference", args=[other.pk])
    fields = {"difference": Difference.objects.get().pk}
    assert as_(alice).post(accept, fields).status_code == 404


@pytest.mark.parametrize("name", ["promote", "roll_back"])
def test_dangerous_actions_need_the_name_and_say_what_hinders_them(as_, alice, replay, name):
    address = reverse(f"dashboard:{name}", args=[replay.pk])
    assert as_(alice).post(address, {"typed": "r-9"}).status_code == 400
    refused = as_(alice).post(address, {"typed": replay.name})
    assert refused.status_code == 409


@pytest.mark.parametrize(
    ("changed", "phrase"),
    [
        ({"paused": True}, "paused"),
        ({"read_limit": 500.0}, "at most 500 rows a second"),
        ({"until": MARCH}, "never: it ends by itself"),
        ({"status": "cutting_over"}, "under way"),
        ({"status": "promoted", "promoted_at": MARCH}, "version 1 is live"),
    ],
)
def test_its_phases_say_how_it_goes_on(as_, alice, replay, changed, phrase):
    Replay.objects.update(**changed)
    assert phrase in page(as_, alice, replay)


def test_a_limit_that_is_none_is_told(as_, alice, replay):
    limit = reverse("dashboard:limit_replay", args=[replay.pk])
    refused = as_(alice).post(limit, {"rows_per_second": "fast"})
    assert "must be rows per second" in refused.content.decode().lower()


def test_what_has_become_of_it_is_said(as_, alice, replay, savepoint):
    Replay.objects.update(status="promoted", promoted_at=MARCH, stood_still_ms=4_200)
    text = page(as_, alice, replay)
    assert "Promoted" in text
    assert "No version ran for" in text
    assert "cannot be rolled back: " in text
    Replay.objects.update(status="rolled_back", ended_at=MARCH, old_savepoint=savepoint)
    assert "The version before runs again" in page(as_, alice, replay)


def test_more_outputs_take_no_more_queries(
    as_, alice, replay, output, store, django_assert_num_queries
):
    client, address = as_(alice), reverse("dashboard:replay", args=[replay.pk])
    for number in range(2):
        with django_assert_num_queries(18):
            client.get(address)
        ReplayOutput.objects.create(replay=replay, uid=f"other {number}", name="other")


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"how": "since", "at": "2013-04-01 00:00"}, None),
        ({"how": "at", "at": "2013-04-01 00:00"}, "2013-04-01T00:00:00+00:00"),
        ({"how": "at"}, "2013-03-01T00:01:00+00:00"),
    ],
)
def test_cut_over_at_an_event_time_or_with_what_was_corrected(as_, alice, replay, given, at):
    Replay.objects.update(status="caught_up", event_time_now=MARCH, live_event_time=MARCH)
    assert "soon; now that is 2013-03-01 00:01:00" in page(as_, alice, replay)
    address = reverse("dashboard:promote", args=[replay.pk])
    answer = as_(alice).post(address, {"typed": replay.name, **given})
    assert answer.status_code == 302
    assert Operation.objects.get(kind__in=("cut_over", "promote_replay")).params.get("at") == at


@pytest.mark.parametrize("given", ["now", "2013-02-01"])
def test_a_time_that_cannot_be_cut_at_is_refused(as_, alice, replay, given):
    Replay.objects.update(status="caught_up", event_time_now=MARCH, live_event_time=MARCH)
    address = reverse("dashboard:promote", args=[replay.pk])
    answer = as_(alice).post(address, {"typed": replay.name, "how": "at", "at": given})
    assert answer.status_code == 400
