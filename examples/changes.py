"""Readings as objects of a class: only those that changed by much, and the implausible ones aside.

    readings ── rows_as(Reading) ──▶ Plausible ──▶ per sensor: Changes ──▶ changes
                                        └─side output "implausible"─▶ readings out of range

The classes are the columns: their annotations are checked against the stream when the graph is
built, and a field that is not Optional is never null.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import engine as hw
from engine.connectors.generator import SensorGenerator
from engine.connectors.parquet_files import ParquetFilesSink

HOME = Path(os.environ.get("HEADWATER_HOME", ".headwater"))


@dataclass
class Reading:
    """What a sensor read."""

    sensor: str
    time: datetime
    value: float


@dataclass
class Change:
    """A reading that is far from the one that was told last."""

    sensor: str
    time: datetime
    value: float
    before: float | None


class Plausible(hw.ProcessFunction):
    """Lets readings within a range pass, and sends the others aside."""

    side_outputs = {"implausible": Reading}

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most = least, most

    def process(self, reading: Reading, ctx: hw.FunctionContext) -> Iterator[Reading]:
        if self.least <= reading.value <= self.most:
            yield reading
        else:
            ctx.emit(reading, to="implausible")


class Changes(hw.KeyedProcessFunction):
    """Tells of a sensor's first reading, and of each that is `by` away from the one before."""

    told = hw.ValueState(float)

    def __init__(self, by: float) -> None:
        self.by = by

    def process(self, reading: Reading, ctx: hw.FunctionContext) -> Iterator[Change]:
        before = self.told.get()
        if before is None or abs(reading.value - before) >= self.by:
            self.told.set(reading.value)
            yield Change(reading.sensor, reading.time, reading.value, before)


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("changes")
    generator = SensorGenerator(args.rate, rows=args.rows, anchor=args.anchor)
    times = hw.bounded_out_of_orderness("500ms", column="time")
    readings = env.source(generator, uid="sensors", watermarks=times).rows_as(Reading)
    plausible = readings.process(Plausible(-0.9, 50), uid="plausible")
    # In order of event time, so that what counts as a change does not depend on what came first.
    changes = plausible.key_by("sensor").process(
        Changes(by=0.5), schema=Change, ordered=True, uid="changes"
    )
    changes.sink(ParquetFilesSink(args.output / "changes"), uid="files")
    implausible = plausible.side_output("implausible")
    implausible.sink(ParquetFilesSink(args.output / "implausible"), uid="implausible-files")
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rate", type=int, default=50, help="readings a second of each sensor")
    parser.add_argument("--rows", type=int, help="end after so many readings of each sensor")
    parser.add_argument("--output", type=Path, default=HOME / "output" / "changes")
    parser.add_argument("--anchor", type=datetime.fromisoformat, help="when the first row is due")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
