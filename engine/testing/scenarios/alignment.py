"""Alignment: two sources of one watermark group, of which one gives its rows slowly.

fast, two splits, at once  ──┐
                             ├─ union ──hash──▶ tumbling windows ──▶ "counts"
slow, a row each 20 ms     ──┘
"""

from __future__ import annotations

import polars as pl

from engine import aggregates as agg
from engine import windows
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.scenario import Scenario
from engine.watermarks import WatermarkStrategy, monotonic

SECOND = 1_000_000
ROWS = 40
DRIFT = 8 * SECOND
EVERY = 20_000
"""µs of processing time between two rows of the slow source."""

ALIGNED = monotonic("t").aligned("both", max_drift=DRIFT)


def aligned_job(
    parallelism: int, output: OutputTables, strategy: WatermarkStrategy = ALIGNED
) -> JobGraph:
    """One row for each second of event time from every split."""
    env = Environment("alignment", parallelism=parallelism, checkpoint_interval=None)
    splits = {"fast": _rows("fast"), "other": _rows("other")}
    fast = env.source(MemorySource(splits), uid="fast", watermarks=strategy)
    trickle = MemorySource({"slow": _rows("slow")}, every=EVERY)
    slow = env.source(trickle, uid="slow", watermarks=strategy)
    counts = (
        fast.union(slow)
        .key_by("split")
        .window(windows.tumbling("1s"))
        .agg(n=agg.count(), uid="counts")
    )
    counts.sink(output.sink("counts"), uid="out")
    return env.graph()


def _rows(split: str) -> pl.DataFrame:
    return pl.DataFrame({"t": [at * SECOND for at in range(ROWS)], "split": [split] * ROWS})


SCENARIO = Scenario("alignment", aligned_job, ("counts",))
