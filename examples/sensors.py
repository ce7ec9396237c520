"""Three sensors, out of order: raw readings, readings amplified by hand, and sums per second.

    sensors --+--------------------------------------> raw readings
              +-- per sensor, a second each --> sums --> points, files
              +-- per sensor --> amplifier ------------> amplified readings
                                     ^
       "pressure 2.5", a line each, from a socket: the factor is state of that sensor

The pressure is a sine of period one second, so in event time each of its sums is zero, to rounding:
at any speed, through any restart.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.generator import SensorGenerator
from engine.connectors.influx import InfluxSink
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.socket import SocketSource
from engine.functions import FunctionContext, Row

HOME = Path(os.environ.get("HEADWATER_HOME", ".headwater"))
CONTROL = os.environ.get("HEADWATER_CONTROL", "127.0.0.1:9999")


class Amplifier(hw.CoProcessFunction):
    """Multiplies the readings of each sensor by the factor that was last set for it."""

    factor = hw.ValueState(float, default=1.0)

    def process_left(self, row: Row, ctx: FunctionContext) -> Iterator[Row]:
        yield row | {"value": row["value"] * self.factor.get()}

    def process_right(self, row: Row, ctx: FunctionContext) -> None:
        self.factor.set(row["factor"])


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("sensors")
    generator = SensorGenerator(args.rate, rows=args.rows, anchor=args.anchor)
    times = hw.bounded_out_of_orderness("500ms", column="time")
    readings = env.source(generator, uid="sensors", watermarks=times)
    by_sensor = readings.key_by("sensor")

    host, _, port = args.control.rpartition(":")
    # A line that is not "<sensor> <factor>" is no command: people make typing errors.
    command = pl.col("line").str.strip_chars()
    factors = (
        env.source(SocketSource(host, int(port)), uid="control", parallelism=1)
        .select(
            sensor=command.str.extract(r"^(\w+)\s"),
            factor=command.str.extract(r"\s([-+.\deE]+)$").cast(pl.Float64, strict=False),
        )
        .filter(pl.col("sensor").is_not_null() & pl.col("factor").is_finite())
    )
    amplified = by_sensor.connect(factors.key_by("sensor")).process(Amplifier(), uid="amplifier")
    sums = by_sensor.window(windows.tumbling("1s")).agg(
        sum=agg.sum("value"), n=agg.count(), uid="sums"
    )

    hour = pl.col("window_start").dt.strftime("%Y-%m-%dT%H")
    sums.sink(ParquetFilesSink(args.output, bucket=hour), uid="sums-files")
    if args.points:
        for stream, name, time, fields in (
            (readings, "sensors_raw", "time", ["value"]),
            (amplified, "sensors_amplified", "time", ["value"]),
            (sums, "sensors_sums", "window_end", ["sum", "n"]),
        ):
            stream.sink(InfluxSink(name, tags=["sensor"], fields=fields, time=time), uid=name)
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rate", type=int, default=50, help="readings a second of each sensor")
    parser.add_argument("--rows", type=int, help="end after so many readings of each sensor")
    parser.add_argument("--control", default=CONTROL, help="host:port that sends factors")
    parser.add_argument("--output", type=Path, default=HOME / "output" / "sensors")
    parser.add_argument("--anchor", type=datetime.fromisoformat, help="when the first row is due")
    parser.add_argument("--no-points", dest="points", action="store_false", help="files only")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
