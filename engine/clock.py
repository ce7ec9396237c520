"""The only place of the engine that reads the time."""

from __future__ import annotations

import time

from engine.elements import Micros


def now_ms() -> int:
    """Epoch milliseconds: what REST and people see."""
    return time.time_ns() // 1_000_000


def now_micros() -> Micros:
    """Processing time: epoch microseconds."""
    return Micros(time.time_ns() // 1_000)


def monotonic() -> float:
    """Seconds on a clock that never goes back: for durations."""
    return time.monotonic()
