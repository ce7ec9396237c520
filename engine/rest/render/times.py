"""Times as Flink writes them.

Units    epoch ms, -1 for "not yet". A watermark of the engine is int64 µs and half-open ("no later
         row has event_time < W"); Flink's is ms and inclusive ("no later row has time <= T"), so
         T = W // 1000 - 1. The two ends of the scale map to the ends of Java's long.
"""

from __future__ import annotations

from engine.elements import MAX_TIME, MIN_TIME, Micros


def flink_watermark(watermark: Micros) -> int:
    """Convert a watermark to Flink's.

    >>> flink_watermark(Micros(2_000)), flink_watermark(Micros(1_999))
    (1, 0)
    """
    if watermark in (MIN_TIME, MAX_TIME):
        return watermark
    return watermark // 1000 - 1


def engine_watermark(flink: int) -> Micros:
    """Convert Flink's watermark back; exact to the millisecond.

    >>> engine_watermark(1)
    2000
    """
    if flink in (MIN_TIME, MAX_TIME):
        return Micros(flink)
    return Micros((flink + 1) * 1000)


def duration(start_ms: int, end_ms: int, now_ms: int) -> int:
    """How long something took, or has taken so far; -1 when it has not begun."""
    if start_ms < 0:
        return -1
    return (end_ms if end_ms >= 0 else max(now_ms, start_ms)) - start_ms
