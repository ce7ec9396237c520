"""How a subtask's thread spends its time: busy, backpressured or idle.

    busy = all the time - waiting for credits (backpressured) - waiting for anything else (idle)

The thread notes its waits; a reporting thread takes shares, which sum to 1,000 ms per second.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """Milliseconds per second; they sum to 1,000."""

    busy: int
    backpressured: int
    idle: int


class Occupancy:
    """Waits of one thread. `wait` and `resume` by that thread, `shares` by one other."""

    def __init__(self, now: float) -> None:
        self._waited = {True: 0.0, False: 0.0}
        self._waiting: tuple[bool, float] | None = None
        self._taken = (now, 0.0, 0.0)

    def wait(self, backpressured: bool, now: float) -> None:
        """The thread goes to sleep: for want of credits, or of anything to do."""
        self._waiting = backpressured, now

    def resume(self, now: float) -> float:
        """The thread is awake again; return how long it slept."""
        if self._waiting is None:
            return 0.0
        backpressured, since = self._waiting
        self._waiting = None
        self._waited[backpressured] += now - since
        return now - since

    def totals(self, now: float) -> tuple[float, float]:
        """Seconds backpressured and idle since the beginning, with the wait that goes on."""
        waiting = self._waiting
        extra = {True: 0.0, False: 0.0}
        if waiting is not None:
            extra[waiting[0]] = now - waiting[1]
        return self._waited[True] + extra[True], self._waited[False] + extra[False]

    def shares(self, now: float) -> Shares:
        """How the time since the last call was spent."""
        backpressured, idle = self.totals(now)
        since, backpressured_then, idle_then = self._taken
        self._taken = now, backpressured, idle
        elapsed = max(now - since, 1e-6)
        blocked = _per_mille(backpressured - backpressured_then, elapsed, 1000)
        resting = _per_mille(idle - idle_then, elapsed, 1000 - blocked)
        return Shares(1000 - blocked - resting, blocked, resting)


def _per_mille(part: float, whole: float, roof: int) -> int:
    return min(max(round(1000 * part / whole), 0), roof)
