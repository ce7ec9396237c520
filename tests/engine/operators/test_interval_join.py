"""The interval join against its definition, one pair at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from engine.elements import MAX_TIME
from engine.operators.joins import held_rows, interval_join
from engine.operators.joins.interval_join import IntervalJoin
from fixtures.join_job import JoinJob, accepted, play, scripts, side

LEFT, RIGHT = side("key", "n"), side("id", "m")
RANGES = [(-3, 2), (0, 0), (-4, -1), (1, 5)]


def run(lower, upper, script, *, outer=False):
    found, *late = play(
        lambda: IntervalJoin(LEFT, RIGHT, lower, upper, outer=outer), (LEFT, RIGHT), script
    )
    rows = [(row["key"], row["n"], row["m"], row["event_time"]) for row in found]
    return sorted(rows, key=repr), late


def model(lower, upper, script, *, outer=False):
    reach = max(upper, 0), max(-lower, 0)
    (left, right), late = accepted(script, lambda port, time, mark: time + reach[port] < mark)
    found = []
    for key, n, at, mark in left:
        met = [
            (m, max(at, time))
            for id_, m, time, its in right
            if id_ == key
            and lower <= time - at <= upper
            and max(at, time) >= (mark if at < mark else at)
            and max(at, time) >= (its if time < its else time)
        ]
        found += [(key, n, m, time) for m, time in met]
        if outer and not met:
            found.append((key, n, None, at + reach[0]))
    return sorted(found, key=repr), late


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize(("lower", "upper"), RANGES)
@given(script=scripts)
@settings(max_examples=15, deadline=None)
def test_rows_near_each_other_meet_through_any_crash_and_rescale(lower, upper, outer, script):
    assert run(lower, upper, script, outer=outer) == model(lower, upper, script, outer=outer)


@given(script=scripts)
@settings(max_examples=15, deadline=None)
def test_how_many_are_joined_or_known_at_once_changes_nothing(script):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_rows, "_MOST_PAIRS", 2)
        patch.setattr(interval_join, "_SLACK", 0)
        assert run(-3, 2, script, outer=True) == model(-3, 2, script, outer=True)


def pairs(left, right, *, outer=False):
    script = [(0, [("a", 0, left, None)]), (1, [("a", 1, right, None)])]
    return [(row[2], row[3]) for row in run(-3, 2, script, outer=outer)[0]]


@pytest.mark.parametrize(("right", "found"), [(6, []), (7, [(1, 10)]), (12, [(1, 12)]), (13, [])])
def test_both_bounds_belong_to_the_range(right, found):
    assert pairs(10, right) == found


def test_a_row_that_meets_none_is_certain_at_the_end_of_its_range():
    assert pairs(10, 6, outer=True) == [(None, 12)]
    assert pairs(10, 7, outer=True) == [(1, 10)]


@pytest.mark.parametrize(("mark", "late"), [(12, []), (13, [("a", 0, 10)])])
def test_a_row_is_late_when_event_time_had_passed_all_that_it_could_meet(mark, late):
    assert run(-3, 2, [(0, [("a", 0, 10, mark)])])[1] == [late, []]


def test_a_row_that_came_behind_meets_only_what_follows():
    script = [(0, [("a", 0, 10, 12)]), (1, [("a", 1, 11, None), ("a", 2, 12, None)])]
    assert run(-3, 2, script)[0] == [("a", 0, 2, 12)]


def test_state_holds_no_more_than_the_range_asks_for():
    job = JoinJob(lambda: IntervalJoin(LEFT, RIGHT, -5, 5), (LEFT, RIGHT))
    for time in range(60):
        job.push(time % 2, [("a", time, time, None)])
        job.advance(time)
    [snapshot] = job.snapshots()
    assert snapshot.tables["held.left"].height <= 10
    assert snapshot.tables["held.right"].height <= 10
    job.advance(MAX_TIME)
    assert all(table.is_empty() for table in job.snapshots()[0].tables.values())
