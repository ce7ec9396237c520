"""Electricity meters that say when an hour is complete: python examples/meters.py

    text ──parse──▶ readings and "complete" marks ──per meter, an hour each──▶ kWh

Readings come in any order, even hours late, so no bound on their disorder would be right. But each
station says when it has sent all of an hour: those marks make the watermarks. The reading that
comes after its hour was complete goes to the side output "late".
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink
from engine.functions import Row

TEXT = """\
reading 2026-01-01T09:10:00 kitchen 1.5
reading 2026-01-01T08:20:00 kitchen 0.5
reading 2026-01-01T08:05:00 garage 7.0
complete 2026-01-01T09:00:00
reading 2026-01-01T09:40:00 garage 6.5
reading 2026-01-01T08:59:00 garage 0.5
reading 2026-01-01T09:20:00 kitchen 0.5
complete 2026-01-01T10:00:00"""


def parsed(row: Row) -> Row:
    """Take a line apart."""
    kind, time, *reading = str(row["line"]).split()
    meter, kwh = reading or (None, 0.0)
    at = datetime.fromisoformat(f"{time}+00:00")
    return {"kind": kind, "at": at, "meter": meter, "kwh": float(kwh)}


def completed(rows: pl.DataFrame) -> pl.Series:
    """Give the watermark behind each row: what a mark says, nothing new behind a reading."""
    return rows.select(pl.when(pl.col("kind") == "complete").then("at")).to_series()


def main() -> None:
    """Describe the job."""
    columns = {"kind": str, "at": datetime, "meter": str, "kwh": float}

    env = hw.Environment("meters")
    lines = env.source(FrameSource(pl.DataFrame({"line": TEXT.splitlines()})), uid="lines")
    rows = lines.map(parsed, schema=columns).assign_timestamps_and_watermarks(
        hw.custom_watermarks(completed, column="at")
    )
    readings = rows.filter(pl.col("kind") == "reading")
    hours = (
        readings.key_by("meter").window(windows.tumbling("1h")).agg(kwh=agg.sum("kwh"), uid="hours")
    )
    hours.sink(PrintSink(), uid="print")
    hours.side_output("late").sink(PrintSink("late"), uid="print-late")
    env.execute()


if __name__ == "__main__":
    main()
