"""The small job of `recovery`: readings, a shuffle, keyed state, files; it says when rows flow.

Arguments: output folder, and the file to which each batch behind the shuffle adds a line.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import polars as pl

import engine as hw
from engine.connectors.generator import SensorGenerator
from engine.connectors.parquet_files import ParquetFilesSink

output, pulse = sys.argv[1:3]


def numbered(count: int, row: dict[str, object]) -> tuple[int, dict[str, object]]:
    return count + 1, {"sensor": row["sensor"], "number": count}


def told(frame: pl.DataFrame) -> pl.DataFrame:
    with Path(pulse).open("a") as file:
        file.write(f"{os.getpid()} {time.monotonic()}\n")
    return frame


env = hw.Environment("recovery", checkpoint_interval="1s")
readings = env.source(SensorGenerator(rate=1_000), uid="readings")
numbers = readings.key_by("sensor").map_with_state(
    numbered, initial_state=0, state_type=int, schema={"sensor": str, "number": int}, uid="numbers"
)
numbers.map_batches(told, uid="told").sink(ParquetFilesSink(output), uid="files")
env.execute()
