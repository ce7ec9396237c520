"""A job for tests whose own code fails on one row, always."""

from __future__ import annotations

import sys

import engine as hw
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.playback import PlaybackSource


def divide(row: dict[str, object]) -> dict[str, object]:
    if row["key"] == 13:
        raise ZeroDivisionError("thirteen")
    return {"key": row["key"]}


env = hw.Environment("poison", checkpoint_interval="200ms")
rows = env.source(PlaybackSource(sys.argv[1], order="known", speed=None), uid="rows")
rows.map(divide, uid="divide").sink(ParquetFilesSink(sys.argv[2]), uid="files")
env.execute()
