"""Enrichment: rows that wait for an answer, held watermarks, and windows behind them."""

from __future__ import annotations

import asyncio
from typing import Any

from engine import aggregates as agg
from engine import windows
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.scenario import Scenario


async def doubled(row: dict[str, Any]) -> dict[str, Any]:
    """Answer after a while."""
    await asyncio.sleep(0)
    return row | {"double": 2 * row["value"]}


async def counted(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Answer for many rows; not for all of them."""
    return [row if row["double"] > 0 else None for row in rows]


def enrichment_job(parallelism: int, output: OutputTables) -> JobGraph:
    """Unordered, then ordered, then sums."""
    env = Environment("enrichment", parallelism=parallelism, checkpoint_interval=None)
    readings = env.source(source(), uid="readings", watermarks=TIMES)
    schema = {**readings.schema, "double": readings.schema["value"]}
    del schema["event_time"]
    asked = readings.map_async(doubled, schema=schema, ordered=False, capacity=4, uid="doubled")
    kept = asked.map_async(counted, rows_per_call=3, capacity=6, uid="kept")
    kept.sink(output.sink("rows"), uid="rows")
    sums = kept.key_by("key").window(windows.tumbling("500ms"))
    sums.agg(sum=agg.sum("double"), uid="sums").sink(output.sink("sums"), uid="out")
    return env.graph()


SCENARIO = Scenario("enrichment", enrichment_job, ("rows", "sums"))
