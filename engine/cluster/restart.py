"""Whether, and after how long, a failed job starts again: pure decisions.

    failure ──▶ RestartPolicy.on_failure ──▶ Restart(delay_ms) | GiveUp(reason)

The delay doubles with each failure and begins anew after a quiet time. The same failure of the
job's own code three times in a row means that it will happen for ever (a poison row, a bug): the
job then fails with that cause, however long its delays have become. What the world breaks
(a killed worker, an unreachable server) is tried again without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import ConfigError, Domain

IDENTICAL_FAILURES = 3
"""Once may be a race and twice bad luck; three times the same is a rule."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What failed, as far as two failures can be the same."""

    domain: Domain
    name: str
    """Type of the error, e.g. "FunctionError"."""
    message: str
    operator: str | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """Start again after a while."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Fail the job."""

    reason: str


@dataclass(frozen=True, slots=True)
class ExponentialDelay:
    """Delays that double from `initial_ms` to `max_ms`; anew after `reset_ms` of quiet."""

    initial_ms: int = 100
    max_ms: int = 10_000
    reset_ms: int = 60_000

    def delay_ms(self, failures: int) -> int | None:
        """How long to wait after so many failures in a row; None: no more restarts."""
        return min(self.max_ms, self.initial_ms << min(failures - 1, 30))

    def __str__(self) -> str:
        return f"exponential delay, {self.initial_ms} ms to {self.max_ms / 1000:g} s"


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """At most `attempts` restarts in a row, `wait_ms` apart."""

    attempts: int
    wait_ms: int
    reset_ms: int = 60_000

    def delay_ms(self, failures: int) -> int | None:
        """How long to wait after so many failures in a row; None: no more restarts."""
        return self.wait_ms if failures <= self.attempts else None

    def __str__(self) -> str:
        return f"fixed delay, {self.attempts} × {self.wait_ms} ms"


Strategy = ExponentialDelay | FixedDelay


def strategy_of(settings: Mapping[str, str]) -> Strategy:
    """The strategy that a job's settings ask for. Raises ConfigError.

    >>> str(strategy_of({}))
    'exponential delay, 100 ms to 10 s'
    >>> strategy_of({"restart-strategy.type": "none"})
    FixedDelay(attempts=0, wait_ms=0, reset_ms=60000)
    """
    kind = settings.get("restart-strategy.type", "exponential-delay")
    match kind:
        case "exponential-delay":
            return ExponentialDelay()
        case "fixed-delay":
            attempts = settings.get("restart-strategy.fixed-delay.attempts", "3")
            delay = settings.get("restart-strategy.fixed-delay.delay-ms", "1000")
            return FixedDelay(_count(attempts, "attempts"), _count(delay, "delay-ms"))
        case "none":
            return FixedDelay(0, 0)
        case _:
            msg = (
                f"setting restart-strategy.type is not known: got {kind!r}; "
                "use exponential-delay, fixed-delay or none"
            )
            raise ConfigError(msg)


def _count(text: str, name: str) -> int:
    if not text.isdecimal():
        msg = (
            f"setting restart-strategy.fixed-delay.{name} must be a whole number: got {text!r}; "
            "pass e.g. 3"
        )
        raise ConfigError(msg)
    return int(text)


@dataclass(slots=True)
class RestartPolicy:
    """Remembers the failures of one job, as far as the next decision needs them."""

    strategy: Strategy = field(default_factory=ExponentialDelay)
    failures: int = 0
    identical: int = 0
    last: Cause | None = None
    last_ms: int = 0

    def on_failure(self, cause: Cause, now_ms: int) -> Restart | GiveUp:
        """Decide what follows a failure."""
        if now_ms - self.last_ms > self.strategy.reset_ms:
            self.failures = 0
        self.identical = self.identical + 1 if cause == self.last else 1
        self.failures += 1
        self.last, self.last_ms = cause, now_ms
        if self._hopeless(cause):
            return GiveUp(f"failed {self.identical} times in a row for the same reason")
        delay_ms = self.strategy.delay_ms(self.failures)
        if delay_ms is None:
            return GiveUp(f"no restart is left: {self.strategy}")
        return Restart(delay_ms)

    def _hopeless(self, cause: Cause) -> bool:
        """Whether running it again cannot help."""
        if cause.domain is Domain.EXTERNAL and cause.name != "SnapshotCorrupt":
            return False  # the world changes; a damaged file does not
        repeatable = cause.domain is not Domain.USER or cause.name == "FunctionError"
        return not repeatable or self.identical >= IDENTICAL_FAILURES
