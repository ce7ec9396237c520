"""A job for tests that remembers many keys: says how often each was seen, with every row.

Run by a cluster of its own; arguments: recording, output folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import engine as hw
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.playback import PlaybackSource

data, output = sys.argv[1:3]


class Seen(hw.KeyedProcessFunction):
    """How often each key was seen."""

    times = hw.ValueState(int, default=0)

    def process(self, row: dict[str, Any], ctx: Any) -> Iterator[dict[str, Any]]:
        self.times.set(self.times.get() + 1)
        yield {"key": row["key"], "times": self.times.get()}


env = hw.Environment("remembering", checkpoint_interval="200ms")
recording = PlaybackSource(data, order="at", speed=1.0, bounded=True)
rows = env.source(recording, uid="rows", watermarks=hw.bounded_out_of_orderness("0s", column="at"))
seen = rows.key_by("key").process(Seen(), schema={"key": int, "times": int}, uid="seen")
seen.sink(ParquetFilesSink(output), uid="files")
env.execute()
