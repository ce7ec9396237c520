"""Sensors that fall silent: a timer per sensor, in event time, and a list of what it said last.

    readings ── per sensor ──▶ Silence ──▶ one row when nothing came for a second
                                  └─side output "spikes"─▶ readings far from the last ones

A generator with three sensors plays the world; two of each four seconds are lost on the way, so
each sensor is silent for a while again and again. The output depends on the times of the
readings only: not on the speed, the parallelism, or restarts.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

import engine as hw
from engine.connectors.generator import SensorGenerator
from engine.connectors.parquet_files import ParquetFilesSink
from engine.functions import Row

HOME = Path(os.environ.get("HEADWATER_HOME", ".headwater"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REMEMBERED = 5


class Silence(hw.KeyedProcessFunction):
    """Tells of each sensor that said nothing for `after` µs, with its last readings."""

    side_outputs = {"spikes": {"sensor": str, "value": float, "usual": float}}
    readings = hw.ListState(float)
    last = hw.ValueState(int)

    def __init__(self, after: int) -> None:
        self.after = after

    def process(self, row: Row, ctx: hw.FunctionContext) -> None:
        before = self.readings.get()
        usual = sum(before) / len(before) if before else row["value"]
        if abs(row["value"] - usual) > 1:
            ctx.emit({"sensor": row["sensor"], "value": row["value"], "usual": usual}, to="spikes")
        self.readings.update([*before, row["value"]][-REMEMBERED:])
        # The timer moves on with each reading: it fires only when none came in time.
        last = self.last.get()
        if last is not None:
            ctx.delete_event_time_timer(last + self.after)
        assert ctx.event_time is not None
        self.last.set(ctx.event_time)
        ctx.register_event_time_timer(ctx.event_time + self.after)

    def on_timer(self, time: int, ctx: hw.FunctionContext) -> Iterator[Row]:
        yield {
            "sensor": ctx.key[0],
            "silent_since": EPOCH + timedelta(microseconds=time - self.after),
            "said": len(self.readings.get()),
        }
        self.readings.clear()
        self.last.clear()


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("silence")
    generator = SensorGenerator(args.rate, rows=args.rows, anchor=args.anchor)
    times = hw.bounded_out_of_orderness("500ms", column="time")
    readings = env.source(generator, uid="sensors", watermarks=times)
    heard = readings.filter(pl.col("time").dt.epoch("s") % 4 < 2)
    silence = heard.key_by("sensor").process(
        Silence(after=1_000_000),
        schema={"sensor": str, "silent_since": datetime, "said": int},
        uid="silence",
    )
    silence.sink(ParquetFilesSink(args.output / "silence"), uid="files")
    spikes = silence.side_output("spikes")
    spikes.sink(ParquetFilesSink(args.output / "spikes"), uid="spikes-files")
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rate", type=int, default=50, help="readings a second of each sensor")
    parser.add_argument("--rows", type=int, help="end after so many readings of each sensor")
    parser.add_argument("--output", type=Path, default=HOME / "output" / "silence")
    parser.add_argument("--anchor", type=datetime.fromisoformat, help="when the first row is due")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
