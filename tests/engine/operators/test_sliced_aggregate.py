"""Windows of shared slices and allowed lateness, against their definition, one row at a time."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import agg, windows
from engine.aggregates import Partials
from engine.elements import MAX_TIME, MIN_TIME
from engine.errors import ConfigError, GraphError
from engine.operators.windows.horizons import horizons
from engine.operators.windows.partial_aggregate import PartialAggregate
from engine.operators.windows.sliced_aggregate import SlicedAggregate
from fixtures.window_job import WindowJob, play

SCHEMA = {
    "key": pl.String(),
    "value": pl.Int64(),
    "event_time": pl.Int64(),
    "row_watermark": pl.Int64(),
}
SPECS = {"n": agg.count(), "total": agg.sum("value"), "most": agg.max("value")}
PARTIALS = Partials(
    {name: spec.accumulator(name, pl.Int64()) for name, spec in SPECS.items()},
    {name: spec.of for name, spec in SPECS.items()},
)


def sliding(size, slide, offset):
    def of(time):
        first = (time - offset) // slide * slide + offset
        starts = range(first, time - size, -slide)
        return [(start, start + size) for start in starts]

    return windows.sliding(size, slide, offset), of


def cumulative(size, step, offset):
    def of(time):
        start = (time - offset) // size * size + offset
        ends = range(start + step, start + size + 1, step)
        return [(start, end) for end in ends if time < end]

    return windows.cumulative(size, step, offset), of


def tumbling(size, offset):
    return windows.tumbling(size, offset), sliding(size, size, offset)[1]


CASES = {
    "slide divides size": (*sliding(6, 2, 1), 0, None),
    "slices in pairs": (*sliding(7, 3, 0), 0, None),
    "paired and offset": (*sliding(5, 4, 3), 0, None),
    "cumulative": (*cumulative(6, 2, 1), 0, None),
    "tumbling, late": (*tumbling(4, 1), 6, 2),
    "sliding, late": (*sliding(6, 2, 1), 4, None),
    "pairs, late": (*sliding(7, 3, 0), 4, 2),
    "cumulative, late": (*cumulative(6, 3, 2), 6, 3),
}


def start(late):
    operator = SlicedAggregate({"key": pl.String()}, late, PARTIALS)
    return WindowJob((PartialAggregate(["key"], late, PARTIALS), operator), SCHEMA)


def run(late, script):
    """(horizon, end, start, key, n, total, most) of every result; the late rows."""
    outputs, set_aside = play(lambda: start(late), script)
    return sorted(map(result, outputs)), set_aside


def result(row):
    end = row["event_time"] + 1
    start = round(row["window_start"].timestamp() * 1e6)
    again = row.get("row_watermark")
    return (end if again is None else again, end, start, *(row[name] for name in ("key", *SPECS)))


def model(windows_of, late, script):
    """The definition: which windows hold a row, and the first horizon of each that counts it."""
    counted, now, set_aside = [], MIN_TIME, []
    for step in script:
        match step:
            case list():
                for key, value, time, own in step:
                    mark = max(now, own if own is not None else MIN_TIME)
                    found = [
                        (horizon, end, start, key, value)
                        for start, end in windows_of(time)
                        if (horizon := first_horizon(end, mark, late)) is not None
                    ]
                    counted += found
                    if not found:
                        set_aside.append((key, time))
            case int():
                now = max(now, step)
    return sorted(results(counted)), set_aside


def first_horizon(end, mark, late):
    every = late.every or 1
    possible = range(end, end + late.allowed + 1, every)
    return next((horizon for horizon in possible if mark < horizon), None)


def results(counted):
    values = defaultdict(list)
    for horizon, end, start, key, value in counted:
        values[end, start, key].append((horizon, value))
    for (end, start, key), rows in values.items():
        for horizon in {horizon for horizon, _ in rows}:
            seen = [value for counts_from, value in rows if counts_from <= horizon]
            yield horizon, end, start, key, len(seen), sum(seen), max(seen)


rows = st.tuples(
    st.sampled_from("abc"),
    st.integers(-9, 9),
    st.integers(-8, 20),
    st.none() | st.integers(-8, 26),
)
batches = st.lists(rows, min_size=1, max_size=6)
watermarks = st.integers(-8, 26)
crashes = st.tuples(st.just("crash"), st.integers(1, 3))
scripts = st.lists(batches | watermarks | crashes, max_size=10)


@pytest.mark.parametrize("case", CASES)
@given(script=scripts)
@settings(max_examples=15, deadline=None)
def test_windows_equal_their_definition_through_any_crash_and_rescale(case, script):
    window, windows_of, allowed, every = CASES[case]
    late = horizons(window, allowed, every)
    assert run(late, script) == model(windows_of, late, script)


def results_of(late, *steps):
    return [found[1:2] + found[4:] for found in run(late, steps)[0]]


def test_a_row_is_in_every_window_that_covers_it():
    assert results_of(horizons(windows.sliding(4, 2)), [("a", 5, 3, None)]) == [
        (4, 1, 5, 5),
        (6, 1, 5, 5),
    ]


def test_a_row_may_be_late_for_one_window_and_in_time_for_the_next():
    late = horizons(windows.sliding(4, 2))
    assert results_of(late, [("a", 5, 3, 4)]) == [(6, 1, 5, 5)]
    assert run(late, [[("a", 5, 3, 6)]]) == ([], [("a", 3)])


@pytest.mark.parametrize(("own", "horizon"), [(3, 4), (4, 6), (5, 6), (6, 8), (7, 8)])
def test_a_late_row_counts_from_the_next_update(own, horizon):
    late = horizons(windows.tumbling(4), 4, every=2)
    [found] = run(late, [[("a", 5, 3, own)]])[0]
    assert found[0] == horizon


def test_a_row_beyond_the_allowed_lateness_is_late():
    late = horizons(windows.tumbling(4), 4, every=2)
    assert run(late, [[("a", 5, 3, 8)]]) == ([], [("a", 3)])


def test_only_keys_with_late_rows_are_given_again():
    late = horizons(windows.tumbling(4), 4)
    script = [[("a", 1, 3, None), ("b", 2, 3, None)], 5, [("a", 3, 2, 5)]]
    fired = run(late, script)[0]
    assert [(row[0], row[3], row[5]) for row in fired] == [(4, "a", 1), (4, "b", 2), (8, "a", 4)]


def test_a_result_that_is_given_again_is_judged_by_its_horizon():
    job = start(horizons(windows.tumbling(4), 4))
    job.push([("a", 1, 3, None), ("a", 1, 3, 5)])
    job.advance(MAX_TIME)
    found = [(row["n"], row["row_watermark"]) for row in job.outputs()]
    assert found == [(1, None), (2, 8)]


def test_slices_are_dropped_after_their_last_horizon():
    job = start(horizons(windows.sliding(4, 2), 2))
    job.push([("a", 1, 3, None), ("a", 1, 5, 7)])
    job.advance(7)
    assert job.subtasks[0].snapshot().tables["slices"].height == 1
    job.advance(10)
    assert all(table.is_empty() for table in job.subtasks[0].snapshot().tables.values())


def test_a_hot_key_leaves_one_partial_per_slice_however_many_windows_it_is_in():
    job = start(horizons(windows.sliding(1000, 1)))
    job.push([("a", 1, 1, None)] * 1000)
    job.flush()
    [frame] = job.partial.frames["main"]
    assert frame["partial.rows"].to_list() == [1000]


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: windows.sliding("1s", "2s"), "slide is longer than the window: got size '1s'"),
        (lambda: windows.sliding("1s", 0), "window slide must be positive: got 0"),
        (lambda: windows.cumulative("1d", "5h"), "not a multiple of its step: got size '1d'"),
        (lambda: horizons(windows.tumbling(4), -1), "allowed lateness is negative: got -1"),
        (lambda: horizons(windows.tumbling(4), 5, 2), "not a whole number of updates: got 5"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(declare, sentence):
    with pytest.raises((GraphError, ConfigError), match=sentence):
        declare()
