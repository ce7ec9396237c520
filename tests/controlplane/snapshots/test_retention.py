"""Which savepoints are kept: each rule at its edges, and what holds for any history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.snapshots.retention import Candidate, Rules, decide, last_good
from controlplane.snapshots.timing import zone_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def ages(*days: float, **more) -> list[Candidate]:
    """One of each age, numbered from 1."""
    return [
        Candidate(number, NOW - timedelta(days=age), **more)
        for number, age in enumerate(days, start=1)
    ]


def kept(candidates, rules) -> dict[int, str]:
    return {one.id: one.reason for one in decide(candidates, rules, NOW) if one.keep}


def test_without_rules_everything_is_kept():
    found = kept(ages(1, 400), Rules())
    assert found == {1: "the last good one", 2: "there are no rules"}


def test_the_newest_n_are_kept():
    found = kept(ages(1, 2, 3, 4), Rules(keep_last=2))
    assert found == {1: "the last good one", 2: "one of the newest 2"}


def test_what_is_as_old_as_the_limit_is_not_younger():
    assert list(kept(ages(0, 6.99, 7), Rules(keep_days=7))) == [1, 2]


def test_the_newest_of_each_week_is_kept_and_named():
    # 30 November 2026 is the Monday of week 49.
    found = kept(ages(0, 1, 2, 8), Rules(weekly=3))
    assert found == {
        1: "the last good one",
        2: "newest of week 48 of 2026",
        4: "newest of week 47 of 2026",
    }


def test_days_months_and_years_change_in_the_time_zone():
    late = [
        Candidate(1, datetime(2026, 10, 31, 23, 30, tzinfo=UTC)),  # 1 November in Berlin
        Candidate(2, datetime(2026, 10, 31, 22, 30, tzinfo=UTC)),
    ]
    berlin = zone_of("Europe/Berlin")
    assert kept(late, Rules(monthly=2, zone=berlin))[2] == "newest of October 2026"
    assert 2 not in kept(late, Rules(monthly=2))
    assert 2 in kept(late, Rules(daily=2, zone=berlin))


def test_periods_without_a_savepoint_do_not_count():
    assert set(kept(ages(0, 40, 80), Rules(daily=3))) == {1, 2, 3}


def test_the_rule_that_comes_first_gives_the_reason():
    found = kept(ages(0, 1), Rules(keep_last=2, keep_days=9, daily=9))
    assert found[2] == "one of the newest 2"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"pinned": True}, "pinned"),
        ({"needs": ("replay r-1 started from it",)}, "replay r-1 started from it"),
        ({"origin": "manual"}, "taken by hand: the rules are not for it"),
        ({"origin": "imported"}, "imported: the rules are not for it"),
        ({"verdict": "unreadable"}, "cannot be read: nobody knows what is in it"),
        ({"expires_at": NOW + timedelta(days=1)}, "expires on 1 Dec 2026"),
    ],
)
def test_what_no_rule_is_asked_about(more, reason):
    one = replace(ages(9)[0], id=9, **more)
    assert kept([*ages(0, 1), one], Rules(keep_last=1))[9] == reason


def test_what_people_took_is_under_the_rules_when_they_say_so():
    taken = replace(ages(9)[0], id=9, origin="manual")
    assert 9 not in kept([*ages(0), taken], Rules(keep_last=1, by_hand=True))


def test_an_expiry_that_has_passed_deletes_whatever_rules_say():
    expired = replace(ages(1)[0], id=9, expires_at=NOW)
    verdict = decide([*ages(0), expired], Rules(keep_last=5), NOW)[1]
    assert (verdict.keep, verdict.reason) == (False, "expired on 30 Nov 2026")


def test_a_damaged_one_does_not_take_the_place_of_a_good_one():
    candidates = ages(0, 1, 2)
    candidates[0] = replace(candidates[0], verdict="damaged")
    found = kept(candidates, Rules(keep_last=1))
    assert found == {2: "the last good one"}


def test_the_last_whole_one_is_kept_beside_the_last_unread_one():
    candidates = [*ages(0, 1), *[replace(one, id=9, verdict="whole") for one in ages(2)]]
    assert last_good(candidates) == {
        1: "the last good one",
        9: "the last one that is known to be whole",
    }


NUMBERS = st.none() | st.integers(1, 6)
RULES = st.builds(Rules, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, by_hand=st.booleans())
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.integers(1, 1_000),
        st.integers(0, 24 * 90).map(lambda hours: NOW - timedelta(hours=hours)),
        st.sampled_from(["scheduled", "manual", "upgrade", "imported"]),
        st.booleans(),
        st.none() | st.integers(-9, 9).map(lambda days: NOW + timedelta(days=days)),
        st.sampled_from(["", "whole", "damaged", "unreadable"]),
        st.booleans(),
        st.sampled_from([(), (), ("a replay needs it",)]),
    ),
    max_size=25,
    unique_by=lambda one: one.id,
)


@settings(max_examples=50)
@given(CANDIDATES, RULES)
def test_what_is_needed_is_never_chosen(candidates, rules):
    doomed = {one.id for one in decide(candidates, rules, NOW) if not one.keep}
    safe = {one.id for one in candidates if one.pinned or one.needs or one.origin == "imported"}
    expired = {one.id for one in candidates if one.expires_at and one.expires_at <= NOW}
    assert not doomed & ((safe - expired) | {one.id for one in candidates if one.pinned})
    assert not doomed & {one.id for one in candidates if one.needs}
    usable = [one for one in candidates if one.is_usable and one.verdict != "unreadable"]
    if usable:
        assert max(usable, key=lambda one: (one.taken_at, one.id)).id not in doomed


@settings(max_examples=50)
@given(CANDIDATES, RULES, st.sampled_from(["keep_last", "keep_days", "daily", "weekly", "monthly"]))
def test_a_larger_rule_keeps_no_less(candidates, rules, name):
    now = getattr(rules, name)
    larger = replace(rules, **{name: 2 if now is None else now + 1})
    if not rules.are_none:
        assert set(kept(candidates, rules)) <= set(kept(candidates, larger))


@settings(max_examples=50)
@given(CANDIDATES, RULES, st.data())
def test_a_pin_costs_nobody_else_his_place(candidates, rules, data):
    if candidates:
        place = data.draw(st.integers(0, len(candidates) - 1))
        pinned = list(candidates)
        pinned[place] = replace(pinned[place], pinned=True)
        assert set(kept(candidates, rules)) <= set(kept(pinned, rules))


@settings(max_examples=50)
@given(CANDIDATES, RULES)
def test_the_order_of_the_rows_decides_nothing(candidates, rules):
    assert decide(candidates, rules, NOW) == decide(candidates[::-1], rules, NOW)
