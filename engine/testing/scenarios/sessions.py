"""Sessions: windows that end when a key is silent, with rows that come behind."""

from __future__ import annotations

from engine import aggregates as agg
from engine import windows
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.scenario import Scenario


def sessions_job(parallelism: int, output: OutputTables) -> JobGraph:
    """Sessions of a gap that is about as long as keys are silent."""
    env = Environment("sessions", parallelism=parallelism, checkpoint_interval=None)
    found = (
        env.source(source(), uid="readings", watermarks=TIMES)
        .key_by("key")
        .window(windows.session("700ms"))
        .agg(n=agg.count(), total=agg.sum("value"), least=agg.min("value"), uid="found")
    )
    found.sink(output.sink("found"), uid="out")
    found.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


SCENARIO = Scenario("sessions", sessions_job, ("found", "late"))
