"""Dealing: rows split, exploded and dealt out, in chains that differ between attempts.

readings ──split──▶ side output "spikes"
   └─ rebalance ─▶ explode ─ rescale ─▶ tags ──hash──▶ windows ──▶ "sums", "late"
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

SPIKE = 1_000


def dealing_job(parallelism: int, output: OutputTables) -> JobGraph:
    """Each row that is no spike counts twice: for its key, and for all."""
    env = Environment("dealing", parallelism=parallelism, checkpoint_interval=None)
    if parallelism == 2:
        env.disable_chaining()
    rows = env.source(source(), uid="readings", watermarks=TIMES)
    calm = rows.split({"spikes": pl.col("value").abs() > SPIKE}, uid="split")
    calm.side_output("spikes").sink(output.sink("spikes"), uid="spikes")
    tags = (
        calm.rebalance()
        .with_columns(tag=pl.concat_list("key", pl.lit("all")), uid="tags", parallelism=3)
        .explode("tag", uid="explode", parallelism=3)
        .rescale()
        .select("tag", "value", uid="values", parallelism=2)
        .start_new_chain()
    )
    sums = (
        tags.key_by("tag")
        .window(windows.tumbling("2s"))
        .agg(n=agg.count(), total=agg.sum("value"), uid="sums")
    )
    sums.sink(output.sink("sums"), uid="out", chained=parallelism > 1)
    sums.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


SCENARIO = Scenario("dealing", dealing_job, ("spikes", "sums", "late"))
