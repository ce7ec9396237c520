"""When to start a program again that ended on its own."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_S = 0.2
MOST_S = 10.0
STEADY_S = 30.0
"""A program that ran this long is well: its next end is a first one."""


@dataclass(slots=True)
class BackOff:
    """Doubling waits; pure, so that it can be tested without waiting."""

    _next_s: float = FIRST_S

    def wait_s(self, ran_s: float) -> float:
        """How long to wait now, after it ran for `ran_s`."""
        if ran_s >= STEADY_S:
            self._next_s = FIRST_S
        wait = self._next_s
        self._next_s = min(MOST_S, self._next_s * 2)
        return wait
