"""A job is checked where it is written: each mistake is one sentence, at its line."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine import agg, windows
from engine.connectors.print import PrintSink
from engine.errors import ConfigError, GraphError
from engine.testing.memory import MemorySource

FLIGHTS = pl.DataFrame(
    schema={
        "carrier": pl.String(),
        "delay": pl.Float64(),
        "cancelled": pl.Boolean(),
        "departure": pl.Datetime("us", "UTC"),
        "tags": pl.List(pl.String),
    }
)
DEPARTURE = hw.bounded_out_of_orderness("24h", column="departure")


class Keeps(hw.KeyedProcessFunction):
    def process(self, row, ctx):
        return [row]


class Joins(hw.CoProcessFunction):
    def process_left(self, row, ctx):
        return [row]

    def process_right(self, row, ctx):
        return None


@pytest.fixture
def env():
    return hw.Environment("flights")


@pytest.fixture
def flights(env):
    return env.source(MemorySource({"all": FLIGHTS}), uid="flights", watermarks=DEPARTURE)


@pytest.fixture
def timeless(env):
    return env.source(MemorySource({"all": FLIGHTS}), uid="timeless")


def columns(stream):
    return {name: str(dtype) for name, dtype in stream.schema.items()}


def test_event_time_is_a_column_of_streams_with_watermarks_only(flights, timeless):
    assert columns(flights)["event_time"] == "Int64"
    assert "event_time" not in columns(timeless)


def test_each_step_knows_its_columns_and_types(flights):
    assert columns(flights.select("carrier", late=pl.col("delay") > 15)) == {
        "carrier": "String",
        "late": "Boolean",
        "event_time": "Int64",
    }
    assert columns(flights.with_columns(pl.col("delay").cast(pl.Int64)))["delay"] == "Int64"
    assert next(iter(flights.rename({"carrier": "airline"}).schema)) == "airline"
    assert "tags" not in flights.drop("tags").schema


def test_select_of_all_columns_is_the_same_stream(flights):
    assert flights.select(pl.all()).schema == flights.schema


def test_a_literal_may_stand_for_an_expression(flights):
    assert columns(flights.with_columns(source="nyc", n=1))["source"] == "String"


def test_a_record_function_keeps_the_columns_unless_it_declares_others(flights):
    assert flights.map(dict).schema == flights.schema
    declared = flights.flat_map(list, schema={"word": str, "n": pl.Int32})
    assert columns(declared) == {"word": "String", "n": "Int32", "event_time": "Int64"}


def test_map_batches_is_tried_on_an_empty_frame(flights):
    stream = flights.map_batches(lambda frame: frame.select(pl.col("delay") / 60))
    assert columns(stream) == {"delay": "Float64", "event_time": "Int64"}


def test_a_window_gives_keys_bounds_and_aggregates(flights):
    daily = (
        flights.key_by("carrier")
        .window(windows.tumbling("1d"))
        .agg(
            flights=agg.count(),
            cancelled=agg.sum("cancelled"),
            mean_delay=agg.mean("delay"),
            max_delay=agg.max(pl.col("delay") * 60),
            last=agg.max("departure"),
            uid="daily",
        )
    )
    utc = "Datetime(time_unit='us', time_zone='UTC')"
    assert columns(daily) == {
        "carrier": "String",
        "window_start": utc,
        "window_end": utc,
        "flights": "Int64",
        "cancelled": "Int64",
        "mean_delay": "Float64",
        "max_delay": "Float64",
        "last": utc,
        "event_time": "Int64",
    }
    assert daily.side_output("late").schema == flights.schema


MISTAKES = {
    "unknown column": (
        lambda s: s.select("carier"),
        r"select names an unknown column: got 'carier'; the stream has carrier, delay",
    ),
    "wrong type": (
        lambda s: s.with_columns(pl.col("delay").str.to_uppercase()),
        "with_columns does not fit the stream's columns",
    ),
    "sum in a select": (
        lambda s: s.select(share=pl.col("delay") / pl.col("delay").sum()),
        "select looks across rows",
    ),
    "shift": (lambda s: s.with_columns(before=pl.col("delay").shift()), "looks across rows"),
    "window function": (
        lambda s: s.with_columns(n=pl.col("delay").cum_sum().over("carrier")),
        "looks across rows",
    ),
    "explode": (lambda s: s.select(pl.col("tags").explode()), "select looks across rows"),
    "writing event time": (
        lambda s: s.with_columns(event_time=pl.col("delay").cast(pl.Int64)),
        "writes the reserved column 'event_time'",
    ),
    "writing all columns": (
        lambda s: s.select("carrier", "delay").with_columns(pl.all().cast(pl.String)),
        "writes the reserved column 'event_time'",
    ),
    "writing the key group": (
        lambda s: s.with_columns(key_group=1),
        "writes the reserved column 'key_group'",
    ),
    "dropping event time": (lambda s: s.drop("event_time"), "drop names the reserved column"),
    "dropping nothing known": (lambda s: s.drop("x"), "drop names an unknown column: got 'x'"),
    "renaming onto another": (
        lambda s: s.rename({"carrier": "delay"}),
        "rename makes two columns of one name: got delay",
    ),
    "filter by a number": (lambda s: s.filter(pl.col("delay")), "filter needs one true or false"),
    "no key": (lambda s: s.key_by(), "key_by names no column"),
    "unknown key": (lambda s: s.key_by("origin"), "key_by names an unknown column: got 'origin'"),
    "float key": (lambda s: s.key_by("delay"), "column 'delay' cannot be a key: its type is Float"),
    "an expression as key": (lambda s: s.key_by(pl.col("tags")), "key_by takes names of columns"),
    "key of event time": (lambda s: s.key_by("event_time"), "unknown column: got 'event_time'"),
    "unknown side output": (lambda s: s.side_output("late"), "stream has no side output 'late'"),
    "no aggregate": (
        lambda s: s.key_by("carrier").window(windows.tumbling("1d")).agg(),
        "agg computes nothing",
    ),
    "aggregate named as a key": (
        lambda s: s.key_by("carrier").window(windows.tumbling("1d")).agg(carrier=agg.count()),
        "aggregate 'carrier' has the name of another column",
    ),
    "aggregate of an unknown column": (
        lambda s: s.key_by("carrier").window(windows.tumbling("1d")).agg(x=agg.sum("y")),
        "aggregate 'x' names an unknown column: got 'y'",
    ),
    "sum of text": (
        lambda s: s.key_by("carrier").window(windows.tumbling("1d")).agg(x=agg.sum("carrier")),
        "aggregate 'x' cannot take the sum of String",
    ),
    "aggregate of an aggregate": (
        lambda s: (
            s.key_by("carrier").window(windows.tumbling("1d")).agg(x=agg.max(pl.col("delay").sum()))
        ),
        "aggregate 'x' looks across rows",
    ),
    "what is no aggregate": (
        lambda s: s.key_by("carrier").window(windows.tumbling("1d")).agg(x="delay"),
        "aggregate 'x' is not one: got 'delay'",
    ),
    "no window": (lambda s: windows.tumbling("0s"), "window size must be positive"),
    "frame function": (
        lambda s: s.map_batches(lambda frame: frame["no"]),
        "failed on an empty frame: ColumnNotFoundError.*pass schema",
    ),
    "unknown type": (lambda s: s.map(dict, schema={"a": object}), "column type is unknown"),
    "reserved name": (
        lambda s: s.map(dict, schema={"key_group": int}),
        "schema names the reserved column 'key_group'",
    ),
    "keys of two types": (
        lambda s: s.key_by("carrier").connect(s.key_by("cancelled")),
        "connect needs keys of equal types: got carrier: String and cancelled: Boolean",
    ),
    "other columns": (lambda s: s.union(s.drop("delay")), "union needs equal columns"),
    "parallelism": (
        lambda s: s.filter(pl.col("cancelled"), parallelism=129),
        "parallelism of 'filter' is out of range: got 129; pass 1 to 128",
    ),
    "empty uid": (lambda s: s.drop("delay", uid=" "), "uid of a project is empty"),
    "uid twice": (
        lambda s: s.drop("delay", uid="flights"),
        "two operators have the uid 'flights'",
    ),
}


@pytest.mark.parametrize(("mistake", "sentence"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_with_one_sentence_that_says_what_to_do(flights, mistake, sentence):
    with pytest.raises((GraphError, ConfigError), match=sentence) as caught:
        mistake(flights)
    assert "\n" not in str(caught.value)


def test_a_window_without_event_time_is_refused(timeless):
    with pytest.raises(GraphError, match=r"needs event time.*pass watermarks"):
        timeless.key_by("carrier").window(windows.tumbling("1d"))


def test_watermarks_of_an_unknown_column_are_refused(env):
    with pytest.raises(GraphError, match=r"names? an unknown column: got 'time'"):
        env.source(MemorySource({"all": FLIGHTS}), watermarks=hw.monotonic(column="time"), uid="x")


def test_a_source_cannot_bring_reserved_columns(env):
    source = MemorySource({"all": pl.DataFrame(schema={"event_time": pl.Int64})})
    with pytest.raises(GraphError, match="has the reserved column 'event_time'"):
        env.source(source)


def test_streams_of_two_environments_do_not_meet(env, flights):
    other = hw.Environment("other").source(
        MemorySource({"all": FLIGHTS}), watermarks=DEPARTURE, uid="flights"
    )
    with pytest.raises(GraphError, match="two environments"):
        flights.union(other)
    with pytest.raises(GraphError, match="two environments"):
        flights.key_by("carrier").connect(other.key_by("carrier")).process(Joins())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": " "}, "job name is empty"),
        ({"name": "x", "max_parallelism": 0}, "max_parallelism is out of range: got 0"),
        ({"name": "x", "max_parallelism": 40_000}, "pass 1 to 32768"),
        ({"name": "x", "checkpoint_interval": "soon"}, "checkpoint interval is not a length"),
    ],
)
def test_an_environment_that_cannot_be_is_refused(arguments, sentence):
    with pytest.raises((GraphError, ConfigError), match=sentence):
        hw.Environment(**arguments)


def test_a_job_without_source_or_sink_is_refused(env):
    with pytest.raises(GraphError, match="job 'flights' has no source"):
        env.graph()
    env.source(MemorySource({"all": FLIGHTS}), uid="flights")
    with pytest.raises(GraphError, match="job 'flights' has no sink"):
        env.graph()


class NeedsOrigin(PrintSink):
    def check(self, schema):
        if "origin" not in schema:
            msg = "print needs a column 'origin'"
            raise GraphError(msg)


def test_a_sink_refuses_a_stream_without_what_it_needs(flights):
    flights.rename({"carrier": "origin"}).sink(NeedsOrigin(), uid="out")
    with pytest.raises(GraphError, match="needs a column 'origin'"):
        flights.sink(NeedsOrigin(), uid="other")


def test_functions_run_on_keyed_streams(flights, timeless):
    kept = flights.key_by("carrier").process(Keeps(), uid="keeps")
    assert kept.schema == flights.schema
    joined = (
        kept.key_by("carrier").connect(timeless.key_by("carrier")).process(Joins(), uid="joins")
    )
    assert joined.schema == flights.schema


class Quiet(hw.KeyedProcessFunction):
    side_outputs = {"loud": {"carrier": str, "n": int}}
    seen = hw.ListState(int)

    def process(self, row, ctx):
        return [row]

    def on_timer(self, time, ctx):
        return None


class Sides(Keeps):
    def __init__(self, **sides):
        self.side_outputs = sides


class Counted(Keeps):
    value = hw.ValueState(int)
    kept = hw.ValueState(int, ttl="1h")


def test_a_function_with_timers_has_its_side_outputs_and_one_for_late_rows(flights):
    kept = flights.key_by("carrier").process(Quiet(), uid="quiet")
    assert columns(kept.side_output("loud")) == {
        "carrier": "String",
        "n": "Int64",
        "event_time": "Int64",
    }
    assert kept.side_output("late").schema == flights.schema
    with pytest.raises(GraphError, match="has no side output 'late': it has 'loud'"):
        flights.key_by("carrier").process(Quiet(), ordered=False).side_output("late")


USES = {
    "timers without event time": (
        lambda s, t: t.key_by("carrier").process(Quiet()),
        "function 'Quiet' has on_timer, but not every input has event time",
    ),
    "order without event time": (
        lambda s, t: (
            s.key_by("carrier").connect(t.key_by("carrier")).process(Joins(), ordered=True)
        ),
        "'Joins' takes rows in order of event time, but not every",
    ),
    "ttl without event time": (
        lambda s, t: t.key_by("carrier").process(Counted()),
        "'Counted' has the state 'kept' with a TTL of event time",
    ),
    "the class": (
        lambda s, t: s.key_by("carrier").process(Keeps),
        r"process needs a KeyedProcessFunction \(pass an object, not the class\)",
    ),
    "another kind": (
        lambda s, t: s.key_by("carrier").process(Joins()),
        "process needs a KeyedProcessFunction: got",
    ),
    "key named as a column of state": (
        lambda s, t: s.rename({"carrier": "value"}).key_by("value").process(Counted()),
        "state 'kept' of 'Counted' has the column 'value', which is a key",
    ),
    "main side output": (
        lambda s, t: s.key_by("carrier").process(Sides(main={"n": int})),
        "cannot have a side output 'main'",
    ),
    "reserved column": (
        lambda s, t: s.key_by("carrier").process(Sides(loud={"key_group": int})),
        "side output 'loud' of 'Sides' declares the reserved column 'key_group'",
    ),
    "side output without columns": (
        lambda s, t: s.key_by("carrier").process(Sides(loud={})),
        "declares no columns",
    ),
}


@pytest.mark.parametrize(("mistake", "sentence"), USES.values(), ids=USES)
def test_a_function_that_cannot_be_used_so_is_refused(flights, timeless, mistake, sentence):
    with pytest.raises(GraphError, match=sentence):
        mistake(flights, timeless)


def test_a_stream_without_a_key_says_what_windows_and_joins_need(flights):
    with pytest.raises(AttributeError, match=r"window needs a key.*call \.key_by"):
        flights.window(windows.tumbling("1m"))
    with pytest.raises(AttributeError, match="a stream has no 'filtre'"):
        flights.filtre()
