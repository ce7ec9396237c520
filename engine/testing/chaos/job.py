"""The job that chaos is done to; run by a cluster, as a job file.

    readings, paced ──key──▶ Streaks (state, timers) ──group──▶ hourly windows ──▶ files
                                  └─ late rows ──▶ files

Two shuffles, keyed state of records and of windows, timers of event time, and two sinks that write
files exactly once. Arguments: recording, output folder, speed ("0": no pace).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import engine as hw
from engine import agg, windows
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.playback import PlaybackSource

HOUR_US = 3_600_000_000
NOTES = 8
"""Entries of a map for each row: soon there are so many that checkpoints become incremental."""
Row = dict[str, Any]


class Streaks(hw.KeyedProcessFunction):
    """Numbers the rows of a key, and tells when it has been silent for an hour.

    What it notes of each row stays for ever, and is looked at again forty rows later.
    """

    total = hw.ValueState(int, default=0)
    notes = hw.MapState(int, float)
    count = hw.ValueState(int, default=0)
    recent = hw.ListState(float)
    due = hw.ValueState(int)

    def process(self, row: Row, ctx: hw.FunctionContext) -> Iterator[Row]:
        """Count it, and be woken an hour after it."""
        self.count.set(self.count.get() + 1)
        self.recent.update([*self.recent.get(), row["value"]][-3:])
        before, due = self.due.get(), row["event_time"] + HOUR_US
        if before is not None:
            ctx.delete_event_time_timer(before)
        self.due.set(due)
        ctx.register_event_time_timer(due)
        yield self._told(ctx, sum(self.recent.get()) + self._noted(row["value"]))

    def _noted(self, value: float) -> float:
        """Note it, in a map that only grows; what was noted a while ago."""
        at = self.total.get()
        self.total.set(at + NOTES)
        for place in range(at, at + NOTES):
            self.notes.put(place, value)
        return self.notes.get(at - 40 * NOTES) or 0.0

    def on_timer(self, time: int, ctx: hw.FunctionContext) -> Iterator[Row]:
        """It was silent: its count begins anew."""
        yield self._told(ctx, 0.0)
        self.count.clear()
        self.recent.clear()
        self.due.clear()

    def _told(self, ctx: hw.FunctionContext, level: float) -> Row:
        return {"group": ctx.key[0] % 7, "number": self.count.get(), "level": level}


def describe(data: str, output: str, speed: float | None) -> hw.Environment:
    """The whole job."""
    env = hw.Environment("chaos", checkpoint_interval="250ms")
    recording = PlaybackSource(data, order="known", split_by="split", speed=speed, bounded=True)
    rows = env.source(
        recording, uid="rows", watermarks=hw.bounded_out_of_orderness("5m", column="at")
    )
    streaks = rows.key_by("key").process(
        Streaks(), schema={"group": int, "number": int, "level": float}, uid="streaks"
    )
    streaks.side_output("late").sink(ParquetFilesSink(f"{output}/late"), uid="late-files")
    hourly = (
        streaks.key_by("group")
        .window(windows.tumbling("1h"))
        .agg(n=agg.count(), most=agg.max("number"), level=agg.sum("level"), uid="hourly")
    )
    hourly.sink(ParquetFilesSink(f"{output}/hourly"), uid="hourly-files")
    return env


if __name__ == "__main__":
    describe(sys.argv[1], sys.argv[2], float(sys.argv[3]) or None).execute()
