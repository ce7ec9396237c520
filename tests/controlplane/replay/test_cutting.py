"""The event time of a cut over: which are taken, and what has to hold for each window once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.contract import SavepointSummary
from controlplane.moments import epoch_ms, epoch_us
from controlplane.replay import cutting
from controlplane.replay.models import Replay
from controlplane.replay.outputs.targets import Target

DECEMBER = datetime(2013, 12, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def at_rest(**splits) -> SavepointSummary:
    return SavepointSummary("/s", "flights", 1, 1, None, {"flights": splits})


def split(watermark: datetime | None, *, idle: bool = False, finished: bool = False):
    mark = None if watermark is None else epoch_us(watermark)
    return {"position": 1, "watermark": mark, "idle": idle, "finished": finished}


@pytest.mark.parametrize(
    ("pace", "live", "soon"),
    [
        (86_400, DECEMBER, DECEMBER + 30 * DAY),
        (1, DECEMBER, DECEMBER + timedelta(minutes=1)),
        (1, DECEMBER + timedelta(microseconds=1), DECEMBER + timedelta(minutes=2)),
        (0, DECEMBER - DAY, DECEMBER + timedelta(minutes=1)),
    ],
)
def test_what_is_proposed_is_round_and_some_seconds_ahead_of_both(pace, live, soon):
    at_ms = epoch_ms(live)
    samples = [[s * 1000, at_ms, at_ms - (20 - s) * pace * 1000, None] for s in range(21)]
    replay = Replay(live_event_time=live, event_time_now=DECEMBER, samples=samples)
    assert cutting.proposed(replay) == soon


def test_nothing_is_proposed_while_a_position_is_unknown():
    assert cutting.proposed(Replay(live_event_time=DECEMBER)) is None


@pytest.mark.parametrize(("marks", "gone"), [((0, 0), False), ((-1, 1), True), ((1, 0), True)])
def test_a_version_may_have_got_to_the_cut_and_not_past_it(marks, gone):
    splits = [split(DECEMBER + mark * timedelta(microseconds=1)) for mark in marks]
    found = cutting.why_passed(at_rest(EWR=splits[0], JFK=splits[1]), DECEMBER, "version 1")
    assert bool(found) is gone
    assert not gone or "version 1 had got to 2013-12-01 00:00:00 UTC already" in found


@pytest.mark.parametrize(
    ("state", "never"),
    [
        (split(DECEMBER), False),
        (split(DECEMBER, idle=True), True),
        (split(None), True),
        (split(None, finished=True), False),
    ],
)
def test_a_split_that_gives_no_rows_never_gets_there(state, never):
    found = cutting.why_never(at_rest(EWR=split(DECEMBER), JFK=state), DECEMBER + DAY, "version 1")
    assert bool(found) is never
    assert not never or "split JFK of flights gives no rows" in found


def test_splits_count_as_ended_when_they_had_not_before():
    before = at_rest(EWR=split(DECEMBER), JFK=split(DECEMBER, finished=True))
    ended = at_rest(EWR=split(DECEMBER, finished=True), JFK=split(DECEMBER, finished=True))
    assert not cutting.has_ended_splits(before, before)
    assert cutting.has_ended_splits(ended, before)


@pytest.mark.parametrize(
    ("window", "why"),
    [
        ({"window": "1d"}, ""),
        ({"window": "1d", "trigger": "event time"}, ""),
        ({"window": "1d", "trigger": "count 5"}, "results before their end"),
        ({}, "no results of windows"),
    ],
)
def test_only_windows_that_give_one_result_are_cut(window, why):
    target = Target("daily", "daily", "kafka", "daily", None, window=window)
    assert why in cutting.why_not_cut([target])
    assert bool(cutting.why_not_cut([target])) is bool(why)


def test_the_first_points_from_the_cut_on_are_known_by_their_time():
    columns = ("window_end", "event_time", "window_start", "seen")
    targets = [Target(name, name, "influx", "m", None, time=name) for name in columns]
    assert cutting.first_points(targets, DECEMBER) == {
        "window_end": DECEMBER + timedelta(microseconds=1),
        "event_time": DECEMBER,
    }


@pytest.mark.parametrize("live", [DECEMBER, DECEMBER - DAY])
def test_a_time_that_one_of_them_has_reached_is_refused_with_both_positions(live, flights):
    replay = Replay(number=7, job=flights, live_event_time=live, event_time_now=DECEMBER)
    with pytest.raises(Refused) as refused:
        cutting.check_ahead(replay, DECEMBER)
    assert f"the live job is at {live:%Y-%m-%d} 00:00:00 UTC" in refused.value.message
    assert "the replay at 2013-12-01 00:00:00 UTC" in refused.value.message
    cutting.check_ahead(replay, DECEMBER + timedelta(microseconds=1))
