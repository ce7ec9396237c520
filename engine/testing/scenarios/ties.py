"""Ties: readings of two keys by the second, so that many agree in both, told apart by a number."""

from __future__ import annotations

import polars as pl

from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.readings import INPUT, TIMES
from engine.testing.scenario import Scenario

COARSE = {
    name: rows.select(
        time=pl.col("time") // 1_000_000 * 1_000_000,
        key=pl.when(pl.col("key") < "d").then(pl.lit("a")).otherwise(pl.lit("b")),
        value=pl.col("value").sign(),
    )
    for name, rows in INPUT.items()
}


def ties_job(parallelism: int, output: OutputTables) -> JobGraph:
    """What a number depends on lies in two splits."""
    env = Environment("ties", parallelism=parallelism, checkpoint_interval=None)
    source = MemorySource(COARSE, every=30_000)
    rows = env.source(source, uid="readings", watermarks=TIMES).key_by("key")
    numbered = rows.number_ties("number", uid="numbers")
    numbered.sink(output.sink("numbered"), uid="numbered")
    numbered.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


SCENARIO = Scenario("ties", ties_job, ("numbered", "late"))
