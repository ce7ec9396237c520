"""The only place of the engine that reads the time.

    wall clock ──follows, but for leaps back──▶ now_ms, now_micros      steady clock ──▶ monotonic

Order    the time of day never leaps back within a process, and never stands still: a timer that
         was set before the wall clock was put back an hour still rings in time. A process that
         ran then goes on ahead of the wall until it ends. Leaps forward are followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.elements import Micros

CORRECTION_NS = 1_000_000_000
"""Smaller steps back are how a clock is kept right: a timer that is late by one is no harm."""


class WallClock:
    """The time of day in nanoseconds, from a clock that people may put back and one they cannot."""

    def __init__(self, wall: Callable[[], int], steady: Callable[[], int]) -> None:
        self._wall = wall
        self._steady = steady
        self._lead = wall() - steady()

    def now(self) -> int:
        """Epoch nanoseconds."""
        # In this order: a pause between the two makes the lead smaller, which the next call mends.
        wall, steady = self._wall(), self._steady()
        lead = wall - steady
        if lead > self._lead - CORRECTION_NS:
            self._lead = lead
        return steady + self._lead


_wall_clock = WallClock(time.time_ns, time.monotonic_ns)


def now_ms() -> int:
    """Epoch milliseconds: what REST and people see."""
    return _wall_clock.now() // 1_000_000


def now_micros() -> Micros:
    """Processing time: epoch microseconds."""
    return Micros(_wall_clock.now() // 1_000)


def monotonic() -> float:
    """Seconds on a clock that never goes back: for durations."""
    return time.monotonic()
