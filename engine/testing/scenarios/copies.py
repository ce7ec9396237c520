"""Copies: rows go straight from a source into a sink of the same chain, and some into another."""

from __future__ import annotations

import polars as pl

from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.scenario import Scenario


def copies_job(parallelism: int, output: OutputTables) -> JobGraph:
    """A barrier reaches these sinks in the call that takes it at the source."""
    env = Environment("copies", parallelism=parallelism, checkpoint_interval=None)
    rows = env.source(source(), uid="readings", watermarks=TIMES)
    rows.sink(output.sink("all"), uid="all")
    rows.filter(pl.col("value") > 0).sink(output.sink("positive"), uid="positive")
    return env.graph()


SCENARIO = Scenario("copies", copies_job, ("all", "positive"))
