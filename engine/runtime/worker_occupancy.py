"""How a subtask's thread spends its time: busy, backpressured or idle.

    busy = all the time - waiting for credits (backpressured) - waiting for anything else (idle)

The thread notes its waits; a reporting thread takes shares, which sum to 1,000 ms per second. A
wait for answers of a service, while no more rows may be asked for, is neither: it is the subtask's
work that takes so long, and holds up those before it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """Milliseconds per second; they sum to 1,000."""

    busy: int
    backpressured: int
    idle: int


@dataclass(frozen=True, slots=True)
class _Waits:
    """Seconds so far, and the wait that goes on: its kind and its beginning."""

    backpressured: float = 0.0
    idle: float = 0.0
    going_on: tuple[bool, float] | None = None

    def until(self, now: float) -> _Waits:
        """With the wait that goes on as if it ended now."""
        if self.going_on is None:
            return self
        backpressured, since = self.going_on
        more = now - since
        if backpressured:
            return _Waits(self.backpressured + more, self.idle)
        return _Waits(self.backpressured, self.idle + more)


class Occupancy:
    """Waits of one thread. `wait` and `resume` by that thread, `shares` by one other."""

    def __init__(self, now: float) -> None:
        # One value, replaced as a whole: whoever reads it sees no wait twice, and misses none.
        self._waits = _Waits()
        self._taken = (now, _Waits())

    @property
    def is_backpressured(self) -> bool:
        """Whether the thread waits for credits now."""
        going_on = self._waits.going_on
        return going_on is not None and going_on[0]

    def wait(self, backpressured: bool, now: float) -> None:
        """The thread goes to sleep: for want of credits, or of anything to do."""
        waits = self._waits
        self._waits = _Waits(waits.backpressured, waits.idle, (backpressured, now))

    def resume(self, now: float) -> float:
        """The thread is awake again; return how long it slept."""
        waits = self._waits
        self._waits = waits.until(now)
        return 0.0 if waits.going_on is None else now - waits.going_on[1]

    def totals(self, now: float) -> tuple[float, float]:
        """Seconds backpressured and idle since the beginning, with the wait that goes on."""
        waits = self._waits.until(now)
        return waits.backpressured, waits.idle

    def shares(self, now: float) -> Shares:
        """How the time since the last call was spent."""
        waits = self._waits.until(now)
        since, then = self._taken
        self._taken = now, waits
        elapsed = max(now - since, 1e-6)
        blocked = _per_mille(waits.backpressured - then.backpressured, elapsed, 1000)
        resting = _per_mille(waits.idle - then.idle, elapsed, 1000 - blocked)
        return Shares(1000 - blocked - resting, blocked, resting)


def _per_mille(part: float, whole: float, roof: int) -> int:
    return min(max(round(1000 * part / whole), 0), roof)
