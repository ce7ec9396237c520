"""A job as text: one golden text of a job that has a bit of everything."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.print import PrintSink
from engine.testing.memory import MemorySource

GOLDEN = Path(__file__).with_name("explained.txt")

READINGS = pl.DataFrame(schema={"sensor": pl.String(), "value": pl.Float64(), "time": pl.Int64()})


class Keeps(hw.CoProcessFunction):
    factor = hw.ValueState(float, default=1.0)

    def process_left(self, row, ctx):
        return [row]

    def process_right(self, row, ctx):
        return None


def job(parallelism=2):
    env = hw.Environment("sensors", parallelism=parallelism, checkpoint_interval="5s")
    time = hw.bounded_out_of_orderness("500ms", column="time")
    source = MemorySource({"all": READINGS})
    readings = env.source(source, uid="readings", watermarks=time)
    factors = env.source(source, uid="factors", watermarks=time, parallelism=1)
    calm = readings.split({"spikes": pl.col("value") > 9}, uid="split")
    calm.side_output("spikes").sink(PrintSink("spike"), uid="spikes", chained=False)
    amplified = (
        calm.key_by("sensor")
        .connect(factors.filter(pl.col("value") > 0).key_by("sensor"))
        .process(Keeps(), uid="amplifier", name="the amplifier")
    )
    sums = (
        amplified.rebalance()
        .select("sensor", double=pl.col("value") * 2)
        .key_by("sensor")
        .window(windows.tumbling("1s"))
        .agg(total=agg.sum("double"), n=agg.count())
    )
    sums.sink(PrintSink(), uid="out", parallelism=1)
    return env


def test_a_job_is_explained_as_it_was_before():
    assert job().explain() + "\n" == GOLDEN.read_text()


def test_only_parallelism_differs_between_two_parallelisms():
    two, three = job(2).explain().splitlines(), job(3).explain().splitlines()
    changed = [(a, b) for a, b in zip(two, three, strict=True) if a != b]
    assert all(a.replace("× 2", "× 3") == b or "subtasks" in a for a, b in changed)
    assert len(changed) > 1
