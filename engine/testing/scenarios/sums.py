"""Sums: tumbling windows with late rows, and a middle at another parallelism.

two splits, late rows --rebalance--> partial sums --hash--> tumbling windows --> "sums"
                                          +--late rows--> "late"
"""

from __future__ import annotations

import polars as pl

from engine import aggregates as agg
from engine import windows
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.scenario import Scenario


def sums_job(parallelism: int, output: OutputTables) -> JobGraph:
    """The job; its middle runs at another parallelism, so that chains differ between attempts."""
    env = Environment("sums", parallelism=parallelism, checkpoint_interval=None)
    rows = env.source(source(), uid="readings", watermarks=TIMES)
    signed = rows.with_columns(sign=pl.col("value").sign(), uid="sign", parallelism=2)
    sums = (
        signed.key_by("key")
        .window(windows.tumbling("2s"))
        .agg(n=agg.count(), total=agg.sum("value"), uid="sums")
    )
    sums.sink(output.sink("sums"), uid="out")
    sums.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


SCENARIO = Scenario("sums", sums_job, ("sums", "late"))
