"""Readings with what a registry knows of their sensor: a slow service, asked for many at a time.

    readings ── asked ──▶ place and unit of the sensor ──▶ files
                  └─ 50 answers are awaited at once, in any order; none passes a watermark

The registry stands for a database or a service on the network: it takes --latency-ms for an answer.
One reading after the other would make 50 readings a second of it; asked like this, all keep up.
A reading whose answer does not come in time is written without a place.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from datetime import datetime
from pathlib import Path

import polars as pl

import engine as hw
from engine.connectors.generator import SensorGenerator
from engine.connectors.parquet_files import ParquetFilesSink
from engine.functions import Row

HOME = Path(os.environ.get("HEADWATER_HOME", ".headwater"))

KNOWN = {"temperature": ("roof", "°C"), "pressure": ("cellar", "Pa"), "door": ("yard", "open")}


class Registry:
    """Asks for one sensor at a time; whoever wants an answer has to wait."""

    def __init__(self, latency_ms: int) -> None:
        self.latency_ms = latency_ms

    async def __call__(self, row: Row) -> Row:
        await asyncio.sleep(self.latency_ms / 1_000)
        place, unit = KNOWN[row["sensor"]]
        return row | {"place": place, "unit": unit}


def unknown(row: Row) -> Row:
    """What to write when there is no answer in time."""
    return row | {"place": None, "unit": None}


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("enrichment")
    generator = SensorGenerator(args.rate, rows=args.rows, anchor=args.anchor)
    times = hw.bounded_out_of_orderness("500ms", column="time")
    readings = env.source(generator, uid="sensors", watermarks=times)
    placed = readings.map_async(
        Registry(args.latency_ms),
        schema={**generator.schema, "place": str, "unit": str},
        capacity=50,
        timeout="1s",
        on_timeout=unknown,
        ordered=False,
        uid="registry",
    )
    hour = pl.col("time").dt.strftime("%Y-%m-%dT%H")
    placed.sink(ParquetFilesSink(args.output, bucket=hour), uid="files")
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rate", type=int, default=50, help="readings a second of each sensor")
    parser.add_argument("--rows", type=int, help="end after so many readings of each sensor")
    parser.add_argument("--latency-ms", type=int, default=20, help="how long an answer takes")
    parser.add_argument("--output", type=Path, default=HOME / "output" / "enrichment")
    parser.add_argument("--anchor", type=datetime.fromisoformat, help="when the first row is due")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
