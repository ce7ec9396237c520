"""How fast a job goes through event time, from where it stood at each look.

    event time
      │          ·─·        slope over the last WINDOW_MS: event seconds per wall second
      │      ·─·
      │  ·─·
      └──────────── wall clock

A position that goes back is a restart: the line begins again there. Pure: times come in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW_MS = 10_000
"""Long enough that a watermark which moves in steps gives a steady figure."""


@dataclass(slots=True)
class SpeedMeter:
    """The line of one run."""

    _line: deque[tuple[int, float]] = field(default_factory=deque)

    def speed(self, wall_ms: int, event_ms: float | None) -> float | None:
        """Add a point and return the slope; None while there is no line yet."""
        if event_ms is None or (self._line and event_ms < self._line[-1][1]):
            self._line.clear()
        if event_ms is None:
            return None
        self._line.append((wall_ms, event_ms))
        # One point before the window stays: it is where the line enters it.
        while len(self._line) > 2 and self._line[1][0] <= wall_ms - WINDOW_MS:
            self._line.popleft()
        (first_wall, first_event), (last_wall, last_event) = self._line[0], self._line[-1]
        if last_wall <= first_wall:
            return None
        return (last_event - first_event) / (last_wall - first_wall)
