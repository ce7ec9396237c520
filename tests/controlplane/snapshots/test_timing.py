"""When schedules run: known days of two time zones, blackouts, and what holds for any of them."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.snapshots.timing import Blackout, Timing, clock_of, zone_of

BERLIN, NEW_YORK = zone_of("Europe/Berlin"), zone_of("America/New_York")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


def cron(line, start, count, zone=BERLIN, **more):
    timing = Timing(cron=line, zone=zone, **more)
    return [f"{run:%d %H:%M}" for run in timing.next_runs(at(start), at(start), count)]


@pytest.mark.parametrize(
    ("line", "start", "wanted"),
    [
        # 29 March 2026, 02:00 to 03:00 does not exist in Berlin.
        ("30 2 * * *", "2026-03-28T00:00", ["28 01:30", "29 01:00", "30 00:30"]),
        ("*/30 * * * *", "2026-03-29T00:10", ["29 00:30", "29 01:00", "29 01:30"]),
        # 25 October 2026, 02:00 to 03:00 comes twice in Berlin.
        ("30 2 * * *", "2026-10-24T00:00", ["24 00:30", "25 00:30", "26 01:30"]),
        ("30 2 * * *", "2026-10-25T01:10", ["26 01:30", "27 01:30"]),
        ("30 2 * * *", "2026-10-25T00:30", ["26 01:30", "27 01:30"]),
        ("0 * * * *", "2026-10-24T23:30", ["25 00:00", "25 01:00", "25 02:00"]),
    ],
)
def test_days_on_which_clocks_change(line, start, wanted):
    assert cron(line, start, len(wanted)) == wanted


def test_clocks_change_on_other_days_elsewhere():
    assert cron("30 2 * * *", "2026-03-07T12:00", 2, NEW_YORK) == ["08 07:00", "09 06:30"]
    assert cron("30 1 * * *", "2026-10-31T12:00", 2, NEW_YORK) == ["01 05:30", "02 06:30"]


def test_an_interval_counts_real_time_on_any_day():
    timing = Timing(every=timedelta(hours=6), zone=BERLIN)
    runs = timing.next_runs(at("2026-10-24T18:00"), at("2026-10-24T18:00"), 3)
    assert [f"{run:%H:%M}" for run in runs] == ["00:00", "06:00", "12:00"]


@pytest.mark.parametrize(("late", "wanted"), [(0, 5), (4.99, 5), (5, 10), (61, 65), (-3, 0)])
def test_the_grid_stays_however_late_a_run_is(late, wanted):
    planned = at("2026-11-01T12:00")
    found = Timing(every=timedelta(minutes=5)).after(planned, planned + timedelta(minutes=late))
    assert found == planned + timedelta(minutes=wanted)


def test_a_blackout_leaves_runs_out_also_over_midnight():
    night = Blackout(time(22), time(6))
    assert cron("0 */4 * * *", "2026-11-01T12:00", 4, UTC, blackouts=(night,)) == [
        "01 16:00",
        "01 20:00",
        "02 08:00",
        "02 12:00",
    ]


def test_a_blackout_of_some_days_belongs_to_the_day_on_which_it_starts():
    weekend = Blackout(time(22), time(6), frozenset({5}))  # Saturday night
    for moment, covered in (
        ("2026-11-07T22:00", True),
        ("2026-11-08T05:59", True),
        ("2026-11-08T06:00", False),
        ("2026-11-08T22:00", False),
        ("2026-11-07T05:00", False),
    ):
        assert weekend.covers(at(moment)) is covered, moment


def test_a_blackout_whose_ends_are_equal_lasts_a_day():
    sunday = Blackout(time(), time(), frozenset({6}))
    assert sunday.covers(at("2026-11-08T00:00"))
    assert sunday.covers(at("2026-11-08T23:59"))
    assert not sunday.covers(at("2026-11-09T00:00"))


def test_a_schedule_that_blackouts_cover_never_runs():
    always = Blackout(time(), time())
    timing = Timing(every=timedelta(minutes=1), blackouts=(always,))
    assert timing.after(at("2026-11-01T12:00"), at("2026-11-01T12:00")) is None


@pytest.mark.parametrize("name", ["", "Mars", "../etc", "/etc/passwd"])
def test_what_is_no_time_zone_is_refused(name):
    with pytest.raises(ValueError, match="time zone is not known"):
        zone_of(name)


@pytest.mark.parametrize("text", ["", "25:00", "7", "07:60"])
def test_what_is_no_time_of_day_is_refused(text):
    with pytest.raises(ValueError, match="time of day must be HH:MM"):
        clock_of(text)


LINES = st.sampled_from(["30 2 * * *", "*/20 * * * *", "0 2,3 * * *", "15 1-3 * * 0"])


@given(LINES, st.sampled_from([BERLIN, NEW_YORK, UTC]), st.integers(0, 525_600))
def test_times_only_grow_and_lie_after_now(line, zone, minute):
    now = at("2026-01-01T00:00") + timedelta(minutes=minute)
    runs = Timing(cron=line, zone=zone).next_runs(now, now, 3)
    assert [now, *runs] == sorted({now, *runs})
