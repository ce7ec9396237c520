"""Count and sum per key and second of event time, as `keyed_sums.py`, from files of JSON lines.

{"key":"k17","time":1767225600000000,"value":0.25}

The files are written while the job is built, which no measurement counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.json_lines import JsonLinesSource
from engine.connectors.parquet_files import ParquetFilesSink

KEYS = 1_000
FILES = 2
RATE = 500_000
"""Rows for each second of event time, of each file."""


def write(folder: Path, rows: int) -> None:
    """Write the input: as many rows to each file."""
    folder.mkdir(parents=True)
    luck = np.random.RandomState(1)
    for file in range(FILES):
        number = np.arange(rows // FILES)
        keys = luck.randint(0, KEYS, len(number))
        columns = {"key": keys, "time": number * (1_000_000 // RATE), "value": number % 97 / 4}
        frame = pl.DataFrame(columns).with_columns("k" + pl.col("key").cast(pl.String))
        frame.write_ndjson(folder / f"{file}.jsonl")


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    folder = args.output.with_name("input")
    write(folder, args.rows)
    columns = {"key": str, "time": int, "value": float}
    env = hw.Environment("json-lines", checkpoint_interval="1s")
    source = JsonLinesSource(folder / "*.jsonl", schema=columns)
    events = env.source(source, uid="lines", watermarks=hw.monotonic("time"))
    sums = (
        events.key_by("key")
        .window(windows.tumbling("1s"))
        .agg(n=agg.count(), sum=agg.sum("value"), uid="sums")
    )
    sums.sink(ParquetFilesSink(args.output), uid="files")
    env.execute()


if __name__ == "__main__":
    main()
