"""Event time that is assigned behind the first steps of a source."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from engine import agg, windows
from engine.elements import EVENT_TIME
from engine.errors import GraphError
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment, Stream
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.scenario import Scenario
from engine.watermarks import bounded_out_of_orderness

TIMES = bounded_out_of_orderness("1s", column="time")


def lines(split: str) -> pl.DataFrame:
    """Text that has to be parsed; some rows are behind their split's watermark."""
    times = [at * 250_000 - (2_000_000 if at % 7 == 6 else 0) for at in range(40)]
    texts = [json.dumps({"time": max(time, 0), "key": split}) for time in times]
    return pl.DataFrame({"line": [*texts, "# the end"]})


def parsed(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["line"])
    return found


def read(env: Environment) -> Stream:
    return env.source(MemorySource({"a": lines("a"), "b": lines("b")}, every=20_000), uid="lines")


def rows(raw: Stream) -> Stream:
    records = raw.filter(~pl.col("line").str.starts_with("#"))
    return records.map(parsed, schema={"time": int, "key": str})


def job(parallelism: int, output: OutputTables) -> JobGraph:
    env = Environment("parsed", parallelism=parallelism, checkpoint_interval=None)
    times = rows(read(env)).assign_timestamps_and_watermarks(TIMES)
    counts = times.key_by("key").window(windows.tumbling("1s")).agg(n=agg.count(), uid="counts")
    counts.sink(output.sink("counts"), uid="out")
    counts.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


SCENARIO = Scenario("parsed", job, ("counts", "late"))


def test_rows_are_late_by_the_watermark_of_their_own_split() -> None:
    counts, late = SCENARIO.undisturbed
    assert set(late["key"]) == {"a", "b"}
    assert late.filter(pl.col("key") == "a").height == late.filter(pl.col("key") == "b").height
    assert counts["n"].sum() + late.height == 80


@pytest.mark.parametrize("seed", range(4))
def test_any_history_gives_the_same_counts_and_late_rows(seed: int) -> None:
    assert SCENARIO.differs(SCENARIO.history(seed)) is None


def test_the_steps_are_part_of_the_source_and_are_described() -> None:
    env = Environment("parsed")
    stream = rows(read(env)).assign_timestamps_and_watermarks(TIMES)
    assert stream.schema == {"time": pl.Int64, "key": pl.String, EVENT_TIME: pl.Int64}
    stream.sink(OutputTables().sink("rows"), uid="out")
    [source, _] = [each for vertex in env.graph().vertices for each in vertex.operators]
    assert source.uid == "lines"
    assert source.operator.describe()["steps"] == "filter → map"


def test_a_source_that_has_the_column_needs_no_step() -> None:
    env = Environment("plain")
    source = MemorySource({"a": pl.DataFrame(schema={"time": pl.Int64})})
    stream = env.source(source, uid="rows").assign_timestamps_and_watermarks(TIMES)
    assert EVENT_TIME in stream.schema


Build = Callable[[Environment], object]

REFUSED: dict[str, tuple[Build, str]] = {
    "shuffled": (
        lambda env: rows(read(env).rebalance()).assign_timestamps_and_watermarks(TIMES),
        "cannot be assigned here: rows of 'lines' were dealt out, or put aside; assign them direc",
    ),
    "at another parallelism": (
        lambda env: (
            read(env)
            .map(parsed, schema={"time": int}, uid="parse", parallelism=2)
            .assign_timestamps_and_watermarks(TIMES)
        ),
        "'parse' has another parallelism than source 'lines'",
    ),
    "of two streams": (
        lambda env: (
            rows(read(env))
            .union(rows(env.source(MemorySource({"a": lines("a")}), uid="more")))
            .assign_timestamps_and_watermarks(TIMES)
        ),
        "rows of 'map-1', 'map-2' have met",
    ),
    "twice": (
        lambda env: (
            rows(read(env))
            .assign_timestamps_and_watermarks(TIMES)
            .assign_timestamps_and_watermarks(TIMES)
        ),
        "source 'lines' has watermarks of its own",
    ),
    "behind state": (
        lambda env: (
            rows(read(env))
            .assign_timestamps_and_watermarks(TIMES)
            .key_by("key")
            .window(windows.tumbling("1s"))
            .agg(n=agg.count(), uid="counts")
            .assign_timestamps_and_watermarks(TIMES)
        ),
        "'counts' is no step of one row at a time",
    ),
    "on a column that is no time": (
        lambda env: read(env).assign_timestamps_and_watermarks(
            bounded_out_of_orderness(0, column="line")
        ),
        "event time column 'line' is not a time: it has type String",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_where_order_is_lost_it_is_refused_with_what_to_do(case: str) -> None:
    build, sentence = REFUSED[case]
    with pytest.raises(GraphError, match=sentence):
        build(Environment("refused"))


def test_rows_without_event_time_go_nowhere_else() -> None:
    env = Environment("before")
    raw = read(env)
    raw.sink(OutputTables().sink("raw"), uid="raw")
    with pytest.raises(GraphError, match="go to 'raw' too; let it read the stream that has them"):
        rows(raw).assign_timestamps_and_watermarks(TIMES)
    env = Environment("after")
    raw = read(env)
    rows(raw).assign_timestamps_and_watermarks(TIMES)
    with pytest.raises(GraphError, match="'raw' reads 'lines' as it was before timestamps"):
        raw.sink(OutputTables().sink("raw"), uid="raw")
