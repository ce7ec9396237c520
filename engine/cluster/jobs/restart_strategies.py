"""Restart strategies: how many times, and how long apart, a failed job starts again.

    none                never
    fixed-delay         so many times in all, always after the same delay
    failure-rate        as long as no more than so many failures fall within an interval
    exponential-delay   after ever longer delays; anew once a restart has lasted for a while

Units    milliseconds of the time of day; delays with jitter are rounded to whole ones.
Order    each remembers the failures of one job, told one after the other: the same failures at
         the same times, with the same source of chance, have the same delays.
Source   Flink's strategies of these names (FLIP-364 for the exponential one).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from random import Random

from engine.durations import format_duration


class Strategy(ABC):
    """Says after each failure how long to wait."""

    @property
    @abstractmethod
    def limited(self) -> bool:
        """Whether a person has said how many failures are too many."""

    @abstractmethod
    def on_failure(self, now_ms: int, chance: Random) -> int | None:
        """How long to wait before the next start; None: no restart is left."""


@dataclass(slots=True)
class NoRestart(Strategy):
    """The first failure is the last."""

    @property
    def limited(self) -> bool:
        """One is too many."""
        return True

    def on_failure(self, now_ms: int, chance: Random) -> int | None:
        """Never again."""
        return None

    def __str__(self) -> str:
        return "no restart"


@dataclass(slots=True)
class FixedDelay(Strategy):
    """At most `attempts` restarts in the life of the job, `wait_ms` after each failure."""

    attempts: int = 1
    wait_ms: int = 1_000
    _failures: int = field(default=0, init=False, compare=False)

    @property
    def limited(self) -> bool:
        """It counts."""
        return True

    def on_failure(self, now_ms: int, chance: Random) -> int | None:
        """Wait, while restarts are left."""
        self._failures += 1
        return self.wait_ms if self._failures <= self.attempts else None

    def __str__(self) -> str:
        return f"fixed delay, {self.attempts} × {_words(self.wait_ms)}"


@dataclass(slots=True)
class FailureRate(Strategy):
    """Restarts, unless more than `max_failures` failures fall within `interval_ms`."""

    max_failures: int = 1
    interval_ms: int = 60_000
    wait_ms: int = 1_000
    _times: deque[int] = field(default_factory=deque, init=False, compare=False)

    @property
    def limited(self) -> bool:
        """It counts."""
        return True

    def on_failure(self, now_ms: int, chance: Random) -> int | None:
        """Wait, unless this failure is one too many; of the past only the interval counts."""
        self._times.append(now_ms)
        while now_ms - self._times[0] > self.interval_ms:
            self._times.popleft()
        return self.wait_ms if len(self._times) <= self.max_failures else None

    def __str__(self) -> str:
        rate = f"{self.max_failures} in {_words(self.interval_ms)}"
        return f"failure rate, {rate}, {_words(self.wait_ms)} apart"


@dataclass(slots=True)
class ExponentialDelay(Strategy):
    """Delays that grow by `multiplier` from `initial_ms` to `max_ms`, give or take `jitter`.

    They begin anew when a failure comes more than `reset_ms` after the restart before it. Jitter
    keeps jobs apart that have failed for one reason, such as a database they share.
    """

    initial_ms: int = 100
    max_ms: int = 10_000
    multiplier: float = 2.0
    reset_ms: int = 60_000
    jitter: float = 0.1
    """Part of a delay by which it may be longer or shorter, 0 to 1."""
    attempts: int | None = None
    """Restarts before the delays begin anew; None: without end."""
    _in_a_row: int = field(default=0, init=False, compare=False)
    _delay: float = field(default=0.0, init=False, compare=False)
    """The latest one, without jitter."""
    _restart_ms: int | None = field(default=None, init=False, compare=False)
    """When the latest restart was due."""

    @property
    def limited(self) -> bool:
        """Only when it was told a number."""
        return self.attempts is not None

    def on_failure(self, now_ms: int, chance: Random) -> int | None:
        """Wait longer than before, or as at first after a long quiet."""
        if self._restart_ms is None or now_ms - self._restart_ms > self.reset_ms:
            self._in_a_row, self._delay = 0, self.initial_ms / self.multiplier
        self._in_a_row += 1
        if self.attempts is not None and self._in_a_row > self.attempts:
            return None
        self._delay = min(self.max_ms, self._delay * self.multiplier)
        varied = self._delay * (1 + self.jitter * chance.uniform(-1, 1))
        delay_ms = round(min(self.max_ms, max(self.initial_ms, varied)))
        self._restart_ms = now_ms + delay_ms
        return delay_ms

    def __str__(self) -> str:
        limit = "" if self.attempts is None else f", {self.attempts} restarts in a row"
        return f"exponential delay, {_words(self.initial_ms)} to {_words(self.max_ms)}{limit}"


def _words(ms: int) -> str:
    return format_duration(ms * 1_000)
