"""Event time and watermarks of a source: declared once, computed per split.

    rows of a split, in order --stamp--> event_time, running maximum - bound = row watermark

Shapes   `stamp` adds `event_time` (Int64, µs), and `row_watermark` (Int64, µs) when some row is
         behind the watermark of its own split; it is null on the rows that are not.
Units    bound and idle_after are µs inside; people write "24h", a timedelta or µs.
Late     the row watermark counts the rows of the split up to and including the row itself, so
         neither batch size nor parallelism nor speed changes what is late.
Source   Akidau et al., The Dataflow Model, VLDB 2015; Flink's BoundedOutOfOrdernessWatermarks.
"""

from __future__ import annotations

from engine.watermarks.generators import WatermarkGenerator
from engine.watermarks.split import SplitWatermarks
from engine.watermarks.strategy import (
    Alignment,
    WatermarkStrategy,
    bounded_out_of_orderness,
    custom_watermarks,
    monotonic,
)
from engine.watermarks.times import check_event_time, event_times

__all__ = [
    "Alignment",
    "SplitWatermarks",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "bounded_out_of_orderness",
    "check_event_time",
    "custom_watermarks",
    "event_times",
    "monotonic",
]
