"""The job of `replay`: months of sensor readings, counted and summed in windows of ten minutes.

    six splits --key(sensor)--> tumbling("10m"): count, sum --> Parquet files
      cellar       6 readings a second: most of all
      floor-1..4   1 a second each
      attic        1 a second, for an hour; then it is silent, and never ends

Shapes   sensor: Int64, eight of each split; value: Float64; time: µs. A reading comes up to `LAG`
         later than its turn, less than the bound of out-of-orderness.
End      the silent split keeps the job running when all else is read: it is stopped with `drain`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.contract import Json, Source, SplitReader
from engine.connectors.paced_log import PacedLog, PacedReader, micros_of
from engine.connectors.parquet_files import ParquetFilesSink

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
DAY_S = 86_400
IDLE = "attic"
AWAKE_S = 3_600
"""Seconds after which the idle split says no more."""
RATES = {"cellar": 6, "floor-1": 1, "floor-2": 1, "floor-3": 1, "floor-4": 1, IDLE: 1}
"""Readings a second of event time."""
SENSORS = 8
LAG = 20 * SECOND
TABLE_BITS = 18


def lengths(days: int) -> dict[str, int]:
    """How many readings each split ever has."""
    seconds = days * DAY_S
    return {split: rate * (AWAKE_S if split == IDLE else seconds) for split, rate in RATES.items()}


class Readings(Source):
    """Readings that are computed from their number; all of them can be read at once."""

    def __init__(self, days: int) -> None:
        self.lengths = lengths(days)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"sensor": pl.Int64(), "value": pl.Float64(), "time": pl.Int64()}

    def splits(self) -> Sequence[str]:
        return list(self.lengths)

    def open(self, split: str, position: Json | None) -> SplitReader:
        log = Recorded(split, self.lengths[split])
        return PacedReader(split, log, micros_of(BEGAN), split != IDLE, position)


class Recorded(PacedLog):
    """One split: every reading is there from the beginning."""

    def __init__(self, split: str, length: int) -> None:
        self.length = length
        self._place = list(RATES).index(split)
        self._step = SECOND // RATES[split]
        luck = np.random.RandomState(self._place)
        self._value = luck.random_sample(1 << TABLE_BITS)
        self._late = luck.randint(0, LAG, 1 << TABLE_BITS, dtype=np.int64)
        self._sensor = self._place * SENSORS + luck.randint(0, SENSORS, 1 << TABLE_BITS)

    def appended(self, elapsed: int) -> int:
        return self.length or 0

    def due(self, row: int) -> int:
        return 0

    def rows(self, lo: int, hi: int) -> pl.DataFrame:
        row = np.arange(lo, hi, dtype=np.int64)
        turn, place = row >> TABLE_BITS, row & ((1 << TABLE_BITS) - 1)
        # Late ones of the first seconds would come before the beginning.
        time = micros_of(BEGAN) + np.maximum(row * self._step - self._late[place], 0)
        value = self._value[place] + turn
        return pl.DataFrame({"sensor": self._sensor[place], "value": value, "time": time})


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--days", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    env = hw.Environment("sensor-months", checkpoint_interval="1s")
    in_time = hw.bounded_out_of_orderness("30s", column="time", idle_after="200ms")
    readings = env.source(Readings(args.days), uid="readings", watermarks=in_time)
    sums = (
        readings.key_by("sensor")
        .window(windows.tumbling("10m"))
        .agg(n=agg.count(), sum=agg.sum("value"), uid="sums")
    )
    sums.sink(ParquetFilesSink(args.output), uid="files")
    env.execute()


if __name__ == "__main__":
    main()
