"""Joins: two streams of the same keys meet in windows, near each other, and version by version."""

from __future__ import annotations

from engine import windows
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.readings import INPUT, TIMES
from engine.testing.scenario import Scenario


def joins_job(parallelism: int, output: OutputTables) -> JobGraph:
    """Three joins of the same two sources, which run at paces of their own."""
    env = Environment("joins", parallelism=parallelism, checkpoint_interval=None)
    sides = [
        env.source(MemorySource({name: rows}, every=every), uid=name, watermarks=TIMES).key_by(
            "key"
        )
        for (name, rows), every in zip(INPUT.items(), (20_000, 45_000), strict=True)
    ]
    left, right = sides
    joined = {
        "window": left.window_join(
            right, windows.tumbling("1s"), how="full", suffix="_right", uid="window"
        ),
        "interval": left.interval_join(
            right, lower="-400ms", upper="300ms", how="left", suffix="_right", uid="interval"
        ),
        "version": left.temporal_join(right, how="left", suffix="_right", uid="version"),
    }
    for name, rows in joined.items():
        rows.sink(output.sink(name), uid=f"{name}-out")
    joined["version"].side_output("late").sink(output.sink("late"), uid="late-out")
    return env.graph()


SCENARIO = Scenario("joins", joins_job, ("window", "interval", "version", "late"))
