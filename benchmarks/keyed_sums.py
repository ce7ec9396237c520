"""The job that is measured: count and sum of 1,000 keys in windows of a second of event time.

    4 splits of made-up events --hash(key)--> tumbling("1s"): count, sum --> Parquet files

Shapes   key: Int64 in [0, 1,000), value: Float64 in [0, 1), time: µs. Each split has `RATE` events
         a second of event time, in order; how fast they are read is up to the engine.
Cost     making the events is part of the job, and of its baseline; it costs next to nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.generator import GeneratorSource
from engine.connectors.parquet_files import ParquetFilesSink
from engine.elements import Micros

KEYS = 1_000
SPLITS = 4
RATE = 500_000
TABLE = 2**20
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Events(GeneratorSource):
    """Events that are computed from their number."""

    def __init__(self, rows: int) -> None:
        super().__init__(RATE, rows=rows // SPLITS, anchor=BEGAN, paced=False)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"key": pl.Int64(), "value": pl.Float64(), "time": pl.Int64()}

    def splits(self) -> Sequence[str]:
        return [str(split) for split in range(SPLITS)]

    def generate(self, split: str, row: npt.NDArray[np.int64], began: Micros) -> pl.DataFrame:
        # Rows are numbered without gaps, so both lookups are slices, and cost next to nothing.
        place = (int(row[0]) + int(split) * 7_919) % TABLE
        events = _table().slice(place, len(row))
        return events.with_columns(pl.Series("time", began + row * (1_000_000 // RATE)))


_made: list[pl.DataFrame] = []


def _table() -> pl.DataFrame:
    """Keys and values, made once per process; twice, so that no slice runs over the end."""
    if not _made:
        luck = np.random.RandomState(1)
        keys, values = luck.randint(0, KEYS, TABLE, dtype=np.int64), luck.random_sample(TABLE)
        once = pl.DataFrame({"key": keys, "value": values})
        _made.append(pl.concat([once, once], rechunk=True))
    return _made[0]


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    env = hw.Environment("keyed-sums", checkpoint_interval="1s")
    events = env.source(Events(args.rows), uid="events", watermarks=hw.monotonic("time"))
    sums = (
        events.key_by("key")
        .window(windows.tumbling("1s"))
        .agg(n=agg.count(), sum=agg.sum("value"), uid="sums")
    )
    sums.sink(ParquetFilesSink(args.output), uid="files")
    env.execute()


if __name__ == "__main__":
    main()
