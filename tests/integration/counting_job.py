"""A job for tests: counts and sums per key and hour, from a recording, with a hash shuffle.

Run by a cluster of its own; arguments: recording, output folder, speed ("0": no pace).
"""

from __future__ import annotations

import sys

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.playback import PlaybackSource

data, output, speed = sys.argv[1:4]

env = hw.Environment("counting", checkpoint_interval="200ms")
recording = PlaybackSource(
    data, order="known", split_by="split", speed=float(speed) or None, bounded=True
)
rows = env.source(recording, uid="rows", watermarks=hw.bounded_out_of_orderness("10m", column="at"))
hourly = (
    rows.filter(pl.col("value") >= 0)
    .key_by("key")
    .window(windows.tumbling("1h"))
    .agg(n=agg.count(), total=agg.sum("value"), uid="hourly")
)
hourly.sink(ParquetFilesSink(output), uid="files")
env.execute()
