"""Rows of one key and time are numbered by what they are, however they come."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as hw
from engine.connectors.influx import InfluxSink
from engine.connectors.point_lines import RecentPoints, points
from engine.elements import MAX_TIME
from engine.errors import GraphError
from engine.operators.columns.number_ties import NumberTies
from engine.testing.harness import OperatorHarness
from engine.testing.memory import MemorySource
from fixtures.join_job import accepted, batches, crashes, play, side, watermarks

SIDE = side("key", "n")
of_one_input = batches.map(lambda step: (0, step[1]))
scripts = st.lists(of_one_input | watermarks | crashes, max_size=8)

EVENTS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 3)), max_size=12
)


def ties():
    return NumberTies(SIDE.schema, SIDE.keys, "number")


def run(script):
    rows, late, _ = play(ties, (SIDE, SIDE), script)
    return [(row["key"], row["event_time"], row["n"], row["number"]) for row in rows], late


def model(script):
    """A row's number: how many of its key and time are smaller, or equal and came before."""
    (rows, _), (late, _) = accepted(script, lambda _port, time, mark: time < mark)
    found, seen = [], {}
    for key, time, n in sorted((key, time, n) for key, n, time, _ in rows):
        number = seen.get((key, time))
        seen[key, time] = (number or 0) + 1
        found.append((key, time, n, number))
    return found, late


@given(scripts)
@settings(max_examples=40, deadline=None)
def test_a_number_is_a_place_among_rows_of_one_key_and_time_through_any_crash_and_rescale(script):
    (found, late), (wanted, wanted_late) = run(script), model(script)
    assert (sorted(found, key=repr), late) == (sorted(wanted, key=repr), wanted_late)


@given(EVENTS, st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_any_order_batches_and_parallelism_write_the_same_points_and_lose_none(
    events, random, size, parallelism
):
    """As InfluxDB keeps them: a point is its series and its time."""
    wanted = kept(run([(0, [(key, n, at, None) for key, at, n in events])])[0])
    shuffled = random.sample(events, len(events))
    script = [("crash", parallelism)]
    for first in range(0, len(shuffled), size):
        script += [(0, [(key, n, at, None) for key, at, n in shuffled[first : first + size]])]
        script += [("crash", random.randint(1, 3))] if random.random() < 0.3 else []
    assert kept(run(script)[0]) == wanted
    assert len(wanted) == len(events)


def kept(rows):
    schema = {"key": pl.String, "event_time": pl.Int64, "n": pl.Int64, "number": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    named = InfluxSink("m", tags=["key", "number"], fields=["n"])
    lines, flaws = points(frame, named, RecentPoints())
    assert not flaws
    return {(series, time): value for series, value, time in (line.split() for line in lines)}


def test_a_row_waits_until_no_other_of_its_time_can_come():
    harness = OperatorHarness(ties(), keys=["key"])
    harness.push([{"key": "a", "n": 3, "event_time": 5}])
    harness.advance(5)
    assert not harness.outputs["main"]
    harness.push([{"key": "a", "n": 2, "event_time": 5}])
    harness.advance(6)
    assert [(row["n"], row["number"]) for row in harness.outputs["main"]] == [(2, None), (3, 1)]
    harness.push([{"key": "a", "n": 1, "event_time": 5}])
    assert harness.outputs["late"] == [{"key": "a", "n": 1, "event_time": 5}]
    assert harness.counters == {"numLateRecordsDropped": 1}


def test_rows_leave_in_order_of_time_and_keep_their_columns():
    harness = OperatorHarness(ties(), keys=["key"])
    harness.push([{"key": key, "n": n, "event_time": n % 3} for n in range(6) for key in "ba"])
    harness.advance(MAX_TIME)
    (frame,) = harness.frames["main"]
    assert frame.columns == ["key", "n", "event_time", "number"]
    assert frame["event_time"].is_sorted()
    assert frame["number"].to_list() == [None, 1] * 6


def stream(*, timed=True):
    watermarks = hw.monotonic("at") if timed else None
    rows = pl.DataFrame(schema={"key": pl.String, "at": pl.Int64})
    source = MemorySource({"x": rows})
    return hw.Environment("ties").source(source, watermarks=watermarks).key_by("key")


@pytest.mark.parametrize("column", ["key", "event_time", "row_watermark", "", None])
def test_a_column_that_there_is_or_cannot_be_is_refused(column):
    with pytest.raises(GraphError, match=r"number_ties (makes column|needs a name)"):
        stream().number_ties(column)


def test_a_stream_without_event_time_is_refused():
    with pytest.raises(GraphError, match="needs event time, which the stream does not have; pass"):
        stream(timed=False).number_ties("number")
