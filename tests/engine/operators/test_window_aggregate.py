"""Window aggregates: both halves together, against the definition, one row at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import agg, windows
from engine.aggregates import Partials
from engine.elements import MAX_TIME, MIN_TIME
from engine.operators.windows.horizons import horizons
from engine.operators.windows.partial_aggregate import PartialAggregate
from engine.operators.windows.window_aggregate import WindowAggregate
from engine.testing.harness import OperatorHarness
from fixtures.window_job import WindowJob, play

SIZE, OFFSET = 4, 1
WINDOW = windows.tumbling(SIZE, offset=OFFSET)
SCHEMA = {
    "key": pl.String(),
    "value": pl.Float64(),
    "event_time": pl.Int64(),
    "row_watermark": pl.Int64(),
}
SPECS = {
    "n": agg.count(),
    "known": agg.count("value"),
    "total": agg.sum("value"),
    "average": agg.mean("value"),
    "least": agg.min("value"),
    "most": agg.max("value"),
}
PARTIALS = Partials(
    {name: spec.accumulator(name, pl.Float64()) for name, spec in SPECS.items()},
    {name: spec.of for name, spec in SPECS.items()},
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def start():
    operator = WindowAggregate({"key": pl.String()}, WINDOW, PARTIALS)
    return WindowJob((PartialAggregate(["key"], horizons(WINDOW), PARTIALS), operator), SCHEMA)


def result(row):
    return (row["window_end"], row["key"], *map(bits, list(row.values())[3:9]))


def bits(value):
    return value.hex() if isinstance(value, float) else value


def run(script):
    """Play a script on the operators."""
    outputs, late = play(start, script)
    return sorted(map(result, outputs)), late


def model(script):
    """The definition of a tumbling window: rows one at a time, no batches, no crashes."""
    panes, now, fired, late = defaultdict(list), MIN_TIME, [], []
    for step in [*script, MAX_TIME]:
        match step:
            case list():
                for key, value, time, own in step:
                    end = (time - OFFSET) // SIZE * SIZE + SIZE + OFFSET
                    if end <= now or (own is not None and end <= own):
                        late.append((key, time))
                    else:
                        panes[end, key].append(value)
            case int():
                now = max(now, step)
                for end, key in [pane for pane in panes if pane[0] <= now]:
                    window_end = EPOCH + timedelta(microseconds=end)
                    fired.append((window_end, key, *aggregated(panes.pop((end, key)))))
    return sorted(fired), late


def aggregated(values):
    known = [value + 0.0 for value in values if value is not None]
    total = math.fsum(known)
    mean, least, most = (total / len(known), min(known), max(known)) if known else (None,) * 3
    return [len(values), len(known), *map(bits, (total, mean, least, most))]


rows = st.tuples(
    st.sampled_from("abcd"),
    st.none() | st.floats(-1e9, 1e9) | st.floats(-1.0, 1.0),
    st.integers(-10, 30),
    st.none() | st.integers(-10, 30),
)
batches = st.lists(rows, min_size=1, max_size=6)
watermarks = st.integers(-10, 30)
crashes = st.tuples(st.just("crash"), st.integers(1, 3))
scripts = st.lists(batches | watermarks | crashes, max_size=12)


@given(scripts)
@settings(max_examples=60, deadline=None)
def test_windows_equal_their_definition_through_any_crash_and_rescale(script):
    assert run(script) == model(script)


@pytest.mark.parametrize(("watermark", "fires"), [(4, False), (5, True)])
def test_a_window_fires_when_the_watermark_reaches_its_end(watermark, fires):
    job = start()
    job.push([("a", 1.0, 4, None)])
    job.advance(watermark)
    assert bool(job.outputs()) is fires


@pytest.mark.parametrize(("own", "late"), [(4, False), (5, True), (None, False)])
def test_a_row_is_late_when_the_watermark_of_its_split_has_reached_the_end(own, late):
    job = start()
    job.push([("a", 1.0, 1, own)])
    assert bool(job.late()) is late


@pytest.mark.parametrize(("time", "begin"), [(0, -3), (1, 1), (4, 1), (5, 5)])
def test_a_window_holds_its_start_and_not_its_end(time, begin):
    job = start()
    job.push([("a", 1.0, time, None)])
    job.advance(MAX_TIME)
    [row] = job.subtasks[0].outputs["main"]
    assert row["window_start"] == EPOCH + timedelta(microseconds=begin)
    assert row["window_end"] == EPOCH + timedelta(microseconds=begin + SIZE)
    assert row["event_time"] == begin + SIZE - 1


def test_late_rows_are_counted_and_keep_all_their_columns():
    job = start()
    job.push([("a", 1.5, 1, 99), ("b", 2.0, 1, None)])
    assert job.partial.counters["numLateRecordsDropped"] == 1
    [late] = job.partial.outputs["late"]
    assert late == {"key": "a", "value": 1.5, "event_time": 1, "row_watermark": 99}


def test_partials_that_miss_their_window_are_counted_by_their_rows():
    job = start()
    job.subtasks[0].advance(5)
    job.push([("a", 1.0, 4, None), ("a", 1.0, 4, None), ("a", 1.0, 5, None)])
    job.flush()
    assert job.subtasks[0].counters["numLateRecordsDropped"] == 2
    job.advance(MAX_TIME)
    assert [row["n"] for row in job.subtasks[0].outputs["main"]] == [1]


def test_results_leave_in_order_of_window_and_key():
    job = start()
    job.push([("b", 1.0, 9, None), ("a", 1.0, 9, None), ("c", 1.0, 1, None)])
    job.advance(MAX_TIME)
    assert [row["key"] for row in job.subtasks[0].outputs["main"]] == ["c", "a", "b"]


def test_a_hot_key_leaves_one_partial_per_slice():
    job = start()
    job.push([("a", 1.0, 1, None)] * 1000)
    job.flush()
    [frame] = job.partial.frames["main"]
    assert frame["partial.rows"].to_list() == [1000]


def test_a_window_of_nothing_but_counts_needs_no_column():
    count = agg.count().accumulator("n", pl.Int32())
    operator = PartialAggregate(
        ["key"], horizons(WINDOW), Partials({"n": count}, {"n": agg.count().of})
    )
    harness = OperatorHarness(operator)
    harness.push([{"key": "a", "event_time": 1}, {"key": "a", "event_time": 2}])
    harness.flush()
    assert harness.frames["main"][0]["n"].to_list() == [2]
