"""Joins are checked when the graph is built."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine import windows
from engine.errors import ConfigError, GraphError
from engine.testing.memory import MemorySource, OutputTables

TIMES = hw.monotonic("at")
ROWS = pl.DataFrame({"user": ["a"], "n": [1], "at": [1]})
HOUR = windows.tumbling("1h")


def stream(env=None, rows=ROWS, watermarks=TIMES):
    env = hw.Environment("joins") if env is None else env
    return env.source(MemorySource({"x": rows}, every=0), watermarks=watermarks)


@pytest.fixture
def left():
    return stream().key_by("user")


@pytest.fixture
def right(left):
    other = stream(left.stream.env).select(id=pl.col("user"), amount=pl.col("n") * 0.5)
    return other.key_by("id")


def test_results_have_the_columns_of_both_but_one_key(left, right):
    joined = left.window_join(right, HOUR)
    utc = pl.Datetime("us", "UTC")
    assert joined.schema == {
        "user": pl.String(),
        "n": pl.Int64(),
        "at": pl.Int64(),
        "amount": pl.Float64(),
        "window_start": utc,
        "window_end": utc,
        "event_time": pl.Int64(),
    }
    near = left.interval_join(right, lower="-1m", upper="1h 30m")
    priced = left.temporal_join(right)
    assert list(near.schema) == ["user", "n", "at", "amount", "event_time"]
    assert priced.schema == near.schema


def test_late_rows_keep_their_columns(left, right):
    joined = left.temporal_join(right)
    assert joined.side_output("late").schema == left.stream.schema
    assert joined.side_output("late_right").schema == right.stream.schema


def test_a_suffix_tells_equal_names_apart(left):
    joined = left.temporal_join(left, suffix="_before")
    assert list(joined.schema) == ["user", "n", "at", "n_before", "at_before", "event_time"]


def test_people_see_how_it_joins(left, right):
    left.interval_join(right, lower="-1m", upper="1h 30m", how="left", uid="near").sink(
        OutputTables().sink("out")
    )
    nodes = [op for vertex in left.stream.env.graph().vertices for op in vertex.operators]
    [near] = [each.operator for each in nodes if each.uid == "near"]
    assert near.describe() == {"keys": "user", "between": "-1m to 1h 30m", "how": "left"}


REFUSED = {
    "equal names": (
        lambda left, right: left.temporal_join(left),
        "temporal_join gets the column 'n' from both streams; pass another suffix, "
        "e.g. suffix='_right', or rename it before",
    ),
    "a suffix that does not help": (
        lambda left, right: left.window_join(left, HOUR, suffix=""),
        "window_join gets the column 'n' from both streams as 'n' with suffix ''; "
        "pass another suffix, e.g. suffix='_right', or rename it before",
    ),
    "no keyed stream": (
        lambda left, right: left.window_join(right.stream, HOUR),
        "window_join needs a keyed stream: got Stream(id: String, amount: Float64, event_time: "
        "Int64); pass e.g. orders.key_by('user')",
    ),
    "another environment": (
        lambda left, right: left.temporal_join(stream().key_by("user")),
        "temporal_join joins streams of two environments; build one job in one environment",
    ),
    "other keys": (
        lambda left, right: left.temporal_join(left.stream.key_by("n")),
        "temporal_join needs keys of equal types: got user: String and n: Int64; cast one of them",
    ),
    "no event time": (
        lambda left, right: left.temporal_join(
            stream(left.stream.env, watermarks=None).key_by("user")
        ),
        "temporal_join needs event time, which the right stream does not have; pass watermarks=… "
        "to env.source, e.g. bounded_out_of_orderness('1s', 'time')",
    ),
    "a session": (
        lambda left, right: left.window_join(right, windows.session("1m")),
        "window_join cannot take window session 1m: sessions of two streams differ; pass a "
        "tumbling, sliding or cumulative window, or use interval_join",
    ),
    "unknown kind": (
        lambda left, right: left.interval_join(right, lower=0, upper=1, how="outer"),
        "interval_join does not know how to join: got how='outer'; pass inner, left",
    ),
    "empty range": (
        lambda left, right: left.interval_join(right, lower="1m", upper="-1m"),
        "range of interval_join is empty: got lower='1m', upper='-1m'; pass e.g. lower='-5m', "
        "upper='1m'",
    ),
    "a column that windows make": (
        lambda left, right: left.window_join(
            right.stream.select("id", window_end=1).key_by("id"), HOUR
        ),
        "window_join makes the column 'window_end', which the right stream has already; "
        "rename it before",
    ),
    "defaults for nothing": (
        lambda left, right: left.temporal_join(right, defaults={"amount": 1.0}),
        "temporal_join has defaults for rows that it leaves out; pass how='left' too",
    ),
    "unknown default": (
        lambda left, right: left.temporal_join(right, how="left", defaults={"sum": 1.0}),
        "defaults of temporal_join name an unknown column: got 'sum'; the versions have amount",
    ),
    "another type": (
        lambda left, right: left.temporal_join(right, how="left", defaults={"amount": "much"}),
        "default of column 'amount' does not fit its type: got 'much' for Float64; pass a value "
        "of that type",
    ),
    "no time to live": (
        lambda left, right: left.temporal_join(right, ttl=0),
        "ttl of versions must be positive: got 0; pass e.g. ttl='1d'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_joined_is_refused_in_one_sentence(left, right, case):
    join, sentence = REFUSED[case]
    with pytest.raises(GraphError) as refused:
        join(left, right)
    assert str(refused.value) == sentence


def test_a_length_of_time_that_is_none_is_refused(left, right):
    with pytest.raises(ConfigError, match="lower of interval_join is not a length of time"):
        left.interval_join(right, lower="-soon", upper=0)
