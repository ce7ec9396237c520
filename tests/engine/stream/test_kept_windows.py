"""Triggers, evictors and whole windows on streams: what they give, and what is refused."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine import agg, evictors, triggers, windows
from engine.errors import GraphError
from engine.testing.memory import MemorySource

ROWS = pl.DataFrame({"who": ["a"], "n": [1], "at": [5], "value": [2], "tags": [["x"]]})


def by(*keys, timed=True):
    times = hw.monotonic(column="at") if timed else None
    return hw.Environment("test").source(MemorySource({"x": ROWS}), watermarks=times).key_by(*keys)


class Plain(triggers.Trigger):
    """A trigger that does not say how it merges."""

    def on_element(self, row, ctx):
        return triggers.TriggerResult.FIRE


class Forgetful(Plain):
    last = hw.ValueState(int, ttl="1s")


class Named(Plain):
    last = hw.ValueState(int)


class Longest(agg.AggregateFunction):
    fields = {"n": int}
    result_type = int

    def create(self):
        return {"n": 0}

    def add(self, fields, row):
        return {"n": max(fields["n"], row["n"])}

    def merge(self, one, other):
        return self.add(one, other)

    def result(self, fields):
        return fields["n"]


def test_results_have_the_keys_the_window_and_their_own_columns():
    window = by("who").window(windows.session("1m"))
    bounds = {"window_start": pl.Datetime("us", "UTC"), "window_end": pl.Datetime("us", "UTC")}
    who, time = {"who": pl.String()}, {"event_time": pl.Int64()}
    stream = window.aggregate(Longest())
    assert stream.schema == {**who, **bounds, "result": pl.Int64(), **time}
    assert window.apply(len, schema={"n": int}).schema == {**who, **bounds, "n": pl.Int64(), **time}


def test_a_global_window_has_no_bounds():
    window = by("who").window(windows.global_()).trigger(triggers.count(3))
    assert list(window.agg(n=agg.count()).schema) == ["who", "n", "event_time"]


def test_a_window_says_in_the_plan_what_fires_it_and_what_it_keeps():
    window = by("who").window(windows.global_()).trigger(triggers.purging(triggers.count(3)))
    stream = window.evictor(evictors.time("1m")).agg(n=agg.count())
    assert stream.outputs[0].node.operator.describe() == {
        "keys": "who",
        "window": "global",
        "trigger": "count 3, purging",
        "evictor": "last 1m",
        "result": "n",
    }


def test_aggregates_without_trigger_and_evictor_are_made_before_the_shuffle():
    stream = by("who").window(windows.tumbling("1m")).agg(n=agg.count())
    assert stream.outputs[0].node.operator.name == "window_aggregate"


TUMBLING, GLOBAL, SESSION = windows.tumbling("1m"), windows.global_(), windows.session("1m")


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (
            lambda: by("who").window(GLOBAL).agg(n=agg.count()),
            "window global never gives a result: it has no end and no trigger",
        ),
        (
            lambda: by("who").window(SESSION).trigger(Plain()).agg(n=agg.count()),
            "trigger 'Plain' cannot be used with session 1m: sessions merge; define its on_merge",
        ),
        (
            lambda: by("who").window(TUMBLING).trigger(Forgetful()).agg(n=agg.count()),
            "state 'last' of trigger 'Forgetful' has a TTL",
        ),
        (
            lambda: by("value").window(TUMBLING).trigger(Named()).agg(n=agg.count()),
            "state 'last' of trigger 'Named' has the column 'value', which is a key too",
        ),
        (
            lambda: by("who", timed=False).window(TUMBLING),
            "window tumbling 1m needs event time",
        ),
        (
            lambda: (
                by("who", timed=False)
                .window(GLOBAL)
                .trigger(triggers.continuous_event_time("1s"))
                .agg(n=agg.count())
            ),
            "trigger 'each 1s of event time' needs event time, which the stream does not have",
        ),
        (
            lambda: (
                by("who", timed=False)
                .window(GLOBAL)
                .trigger(triggers.count(3))
                .evictor(evictors.time("1s"))
                .agg(n=agg.count())
            ),
            "evictor 'last 1s' names an unknown column: got 'event_time'",
        ),
        (
            lambda: by("who").window(GLOBAL).trigger(triggers.processing_time()).agg(n=agg.count()),
            "trigger 'processing time' never fires in a global window",
        ),
        (
            lambda: (
                by("who")
                .window(TUMBLING)
                .allowed_lateness("1h", every="1m")
                .trigger(triggers.count(3))
                .agg(n=agg.count())
            ),
            "allowed lateness has `every` beside trigger 'count 3'",
        ),
        (
            lambda: by("who").window(TUMBLING).evictor(evictors.delta(1, "m")).agg(n=agg.count()),
            "evictor .* names an unknown column: got 'm'",
        ),
        (lambda: by("who").window(TUMBLING).trigger(7), "trigger is not one: got 7"),
        (lambda: by("who").window(TUMBLING).evictor(7), "evictor is not one: got 7"),
        (
            lambda: by("who").window(TUMBLING).reduce(7),
            "reduce needs a function of two rows: got 7",
        ),
        (lambda: by("who").window(TUMBLING).aggregate(7), "aggregate needs an agg.AggregateFunc"),
        (lambda: by("who").window(TUMBLING).apply(len, schema={}), "apply 'len' gives nothing"),
        (
            lambda: by("who").window(TUMBLING).apply(len, schema={"who": str}),
            "apply 'len' gives the column 'who', which is there already",
        ),
        (
            lambda: by("who").window(TUMBLING).reduce(lambda one, other: one),
            r"state cannot hold List\(String\)",
        ),
        (lambda: triggers.count(0), "count trigger needs a positive number of rows: got 0"),
        (lambda: triggers.purging(7), "purging needs a trigger: got 7"),
        (
            lambda: triggers.continuous_event_time(0),
            "interval of a trigger must be positive: got 0",
        ),
        (lambda: evictors.count(0), "count evictor needs a positive number of rows: got 0"),
        (lambda: evictors.time("0s"), "size of a time evictor must be positive: got '0s'"),
        (lambda: evictors.delta(0, "n"), "threshold of a delta evictor must be positive: got 0"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_written(declare, sentence):
    with pytest.raises(GraphError, match=sentence):
        declare()
