"""A job for tests: counts per key and hour of a recording, to files and as points.

Run by a cluster of its own; arguments: recording, output folder, speed.
"""

from __future__ import annotations

import sys

import engine as hw
from engine import agg, windows
from engine.connectors.influx import InfluxSink
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.playback import PlaybackSource

data, output, speed = sys.argv[1:4]

env = hw.Environment("points", checkpoint_interval="200ms")
recording = PlaybackSource(data, order="known", split_by="split", speed=float(speed), bounded=True)
rows = env.source(recording, uid="rows", watermarks=hw.bounded_out_of_orderness("10m", column="at"))
hourly = rows.key_by("key").window(windows.tumbling("1h")).agg(n=agg.count(), uid="hourly")
hourly.sink(ParquetFilesSink(output), uid="files")
hourly.sink(InfluxSink("hourly", tags=["key"], fields=["n"], time="window_end"), uid="points")
env.execute()
