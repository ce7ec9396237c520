"""The window join against its definition, one row at a time."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings

from engine import windows
from engine.operators.joins.window_join import How, WindowJoin
from fixtures.join_job import JoinJob, accepted, play, scripts, side

LEFT, RIGHT = side("key", "n"), side("id", "m")


def sliding(size, slide, offset):
    def of(time):
        first = (time - offset) // slide * slide + offset
        return [(start, start + size) for start in range(first, time - size, -slide)]

    return windows.sliding(size, slide, offset), of


def cumulative(size, step, offset):
    def of(time):
        start = (time - offset) // size * size + offset
        return [(start, end) for end in range(start + step, start + size + 1, step) if time < end]

    return windows.cumulative(size, step, offset), of


CASES = {
    "tumbling": (windows.tumbling(4, 1), sliding(4, 4, 1)[1]),
    "sliding": sliding(6, 2, 1),
    "slices in pairs": sliding(7, 3, 0),
    "cumulative": cumulative(6, 2, 1),
}


def run(window, how, script):
    found, *late = play(lambda: WindowJoin(LEFT, RIGHT, window, how), (LEFT, RIGHT), script)
    return sorted(map(result, found), key=repr), late


def result(row):
    bounds = [round(row[name].timestamp() * 1e6) for name in ("window_start", "window_end")]
    return (*bounds, row["event_time"], row["key"], row["n"], row["m"])


def model(windows_of, how, script):
    def is_late(_, time, mark):
        return all(end <= mark for _, end in windows_of(time))

    kept, late = accepted(script, is_late)
    held = [defaultdict(list), defaultdict(list)]
    for port, rows in enumerate(kept):
        for key, value, time, mark in rows:
            for start, end in windows_of(time):
                if mark < end:
                    held[port][start, end, key].append(value)
    left, right = held
    found = []
    for start, end, key in {*left, *right}:
        mine, theirs = left[start, end, key], right[start, end, key]
        if how in ("left", "full"):
            theirs = theirs or [None]
        if how in ("right", "full"):
            mine = mine or [None]
        found += [(start, end, end - 1, key, n, m) for n in mine for m in theirs]
    return sorted(found, key=repr), late


@pytest.mark.parametrize("how", How)
@pytest.mark.parametrize("case", CASES)
@given(script=scripts)
@settings(max_examples=6, deadline=None)
def test_rows_of_a_window_meet_through_any_crash_and_rescale(case, how, script):
    window, windows_of = CASES[case]
    assert run(window, how, script) == model(windows_of, how, script)


def test_rows_meet_when_event_time_has_passed_their_window():
    job = JoinJob(lambda: WindowJoin(LEFT, RIGHT, windows.tumbling(4), How.INNER), (LEFT, RIGHT))
    job.push(0, [("a", 1, 0, None)])
    job.push(1, [("a", 2, 3, None), ("a", 3, 4, None)])
    job.advance(3)
    job.collect()
    assert not job.played.outputs
    job.advance(4)
    job.collect()
    assert [(row["n"], row["m"]) for row in job.played.outputs] == [(1, 2)]


def test_a_row_may_be_late_for_one_window_and_in_time_for_the_next():
    script = [(0, [("a", 1, 3, 4)]), (1, [("a", 2, 3, None)])]
    found, late = run(windows.sliding(4, 2), How.INNER, script)
    assert [row[1] for row in found] == [6]
    assert late == [[], []]
