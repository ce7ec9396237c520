"""Triggers: sessions that are told while they last; the order of their rows shows in the results.

readings ── sessions, each 500 ms and at the end, folded ──▶ "so_far", "late"
"""

from __future__ import annotations

from engine import triggers, windows
from engine.functions import Row
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.scenario import Scenario


def halved(one: Row, other: Row) -> Row:
    """A mean in which later rows count more: it depends on their order to the last bit."""
    return {"value": (one["value"] + other["value"]) / 2, "time": other["time"]}


def triggers_job(parallelism: int, output: OutputTables, state_backend: str = "memory") -> JobGraph:
    """Sessions that merge, with a trigger that has state and timers."""
    env = Environment(
        "triggers", parallelism=parallelism, checkpoint_interval=None, state_backend=state_backend
    )
    keyed = env.source(source(), uid="readings", watermarks=TIMES).key_by("key")
    sessions = keyed.window(windows.session("400ms")).allowed_lateness("500ms")
    each = sessions.trigger(triggers.continuous_event_time("500ms"))
    so_far = each.reduce(halved, uid="so-far")
    so_far.sink(output.sink("so_far"), uid="out")
    so_far.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


SCENARIO = Scenario("triggers", triggers_job, ("so_far", "late"))
