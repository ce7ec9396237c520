"""Reminders: a function of each row with states that expire, timers and a side output."""

from __future__ import annotations

from collections.abc import Iterator

from engine.functions import FunctionContext, KeyedProcessFunction, ListState, Row, ValueState
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.scenario import Scenario

SILENCE_US = 600_000


class Reminders(KeyedProcessFunction):
    """Tell what a key has had once it is silent for 600 ms; a long list is told aside."""

    side_outputs = {"long": {"key": str, "rows": int}}
    times = ListState(int, ttl="2s")
    reminder = ValueState(int)

    def process(self, row: Row, ctx: FunctionContext) -> None:
        """Move the reminder on."""
        before, due = self.reminder.get(), row["event_time"] + SILENCE_US
        if before is not None:
            ctx.delete_event_time_timer(before)
        ctx.register_event_time_timer(due)
        self.reminder.set(due)
        self.times.add(row["event_time"])
        if len(self.times.get()) > 2:
            ctx.emit({"key": row["key"], "rows": len(self.times.get())}, to="long")

    def on_timer(self, time: int, ctx: FunctionContext) -> Iterator[Row]:
        """The key was silent."""
        yield {"key": ctx.key[0], "told": sum(self.times.get())}
        self.times.clear()
        self.reminder.clear()


def reminders_job(parallelism: int, output: OutputTables) -> JobGraph:
    """One function, its timers, its side output and its late rows."""
    env = Environment("reminders", parallelism=parallelism, checkpoint_interval=None)
    told = (
        env.source(source(), uid="readings", watermarks=TIMES)
        .key_by("key")
        .process(Reminders(), schema={"key": str, "told": int}, uid="told")
    )
    for table in ("long", "late"):
        told.side_output(table).sink(output.sink(table), uid=table)
    told.sink(output.sink("told"), uid="out")
    return env.graph()


SCENARIO = Scenario("reminders", reminders_job, ("told", "long", "late"))
