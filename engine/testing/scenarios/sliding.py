"""Sliding: windows that share slices, and give corrected results while late rows are allowed."""

from __future__ import annotations

from engine import aggregates as agg
from engine import windows
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.scenario import Scenario


def sliding_job(parallelism: int, output: OutputTables) -> JobGraph:
    """Every kind of aggregate over windows that slide, some of them given twice."""
    env = Environment("sliding", parallelism=parallelism, checkpoint_interval=None)
    found = (
        env.source(source(), uid="readings", watermarks=TIMES)
        .key_by("key")
        .window(windows.sliding("1500ms", "500ms"))
        .allowed_lateness("500ms")
        .agg(
            n=agg.count(),
            total=agg.sum("value"),
            most=agg.max("value"),
            newest=agg.last("value"),
            spread=agg.std("value"),
            uid="found",
        )
    )
    found.sink(output.sink("found"), uid="out")
    found.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


SCENARIO = Scenario("sliding", sliding_job, ("found", "late"))
