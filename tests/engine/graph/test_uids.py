"""Every kind of operator that keeps something asks for a uid; none that keeps nothing does."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine import agg, triggers, windows
from engine.connectors.print import PrintSink
from engine.testing.memory import MemorySource

ROWS = MemorySource({"all": pl.DataFrame(schema={"key": pl.Int64, "n": pl.Int64, "at": pl.Int64})})
HOUR = windows.tumbling("1h")


class Counts(hw.KeyedProcessFunction):
    seen = hw.ValueState(int, default=0)

    def process(self, row, ctx):
        return [row]


class Both(hw.CoProcessFunction):
    seen = hw.ValueState(int, default=0)

    def process_left(self, row, ctx):
        return [row]

    def process_right(self, row, ctx):
        return None


class Told(hw.KeyedBroadcastProcessFunction):
    told = hw.BroadcastState(int, int)

    def process(self, row, ctx):
        return [row]

    def process_broadcast(self, row, ctx):
        return None


async def answer(row):
    return row


def last(rows, ctx):
    return rows.select("n")


KEEP = {
    "agg": lambda s, k: k.window(HOUR).agg(x=agg.count()),
    "sliding agg": lambda s, k: k.window(windows.sliding("2h", "1h")).agg(x=agg.count()),
    "session agg": lambda s, k: k.window(windows.session("1h")).agg(x=agg.count()),
    "triggered agg": lambda s, k: k.window(HOUR).trigger(triggers.count(2)).agg(x=agg.count()),
    "apply": lambda s, k: k.window(HOUR).apply(last, schema={"n": int}),
    "count window": lambda s, k: k.count_window(3).apply(last, schema={"n": int}),
    "process": lambda s, k: k.process(Counts()),
    "connected": lambda s, k: k.connect(k).process(Both()),
    "broadcast": lambda s, k: k.connect(s.broadcast()).process(Told()),
    "map_with_state": lambda s, k: k.map_with_state(
        lambda state, row: (state, row), initial_state=0, state_type=int
    ),
    "window join": lambda s, k: k.window_join(k, HOUR, suffix="_right"),
    "interval join": lambda s, k: k.interval_join(k, lower=0, upper="1h", suffix="_right"),
    "temporal join": lambda s, k: k.temporal_join(k, suffix="_right"),
    "number ties": lambda s, k: k.number_ties("n2"),
    "map_async": lambda s, k: s.map_async(answer),
}
KEEP_NOTHING = {
    "map": lambda s, k: s.map(dict),
    "select": lambda s, k: s.select("n"),
    "explode": lambda s, k: s.select(x=pl.concat_list("n", "n")).explode("x"),
    "split": lambda s, k: s.split({"big": pl.col("n") > 1}),
    "map_batches": lambda s, k: s.map_batches(lambda frame: frame),
}


def warnings(step):
    env = hw.Environment("uids")
    stream = env.source(ROWS, uid="rows", watermarks=hw.monotonic("at"))
    step(stream, stream.key_by("key")).sink(PrintSink(), uid="out")
    return env.graph().warnings


@pytest.mark.parametrize("step", KEEP.values(), ids=KEEP)
def test_what_keeps_something_asks_for_a_uid(step):
    assert len(warnings(step)) == 1
    assert "keeps state under an automatic uid" in warnings(step)[0]


@pytest.mark.parametrize("step", KEEP_NOTHING.values(), ids=KEEP_NOTHING)
def test_what_keeps_nothing_asks_for_none(step):
    assert warnings(step) == ()


def test_sources_and_sinks_ask_for_a_uid():
    env = hw.Environment("uids")
    env.source(ROWS).sink(PrintSink())
    assert [warning.split(" keeps ")[0] for warning in env.graph().warnings] == [
        "source 'source-1'",
        "sink 'sink-1'",
    ]
