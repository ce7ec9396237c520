"""Whether, and after how long, a failed job starts again: pure decisions.

    failure ──▶ RestartPolicy.on_failure ──▶ Restart(delay_ms) | GiveUp(reason)

How often and how long is the strategy's to say (restart_strategies.py). The policy knows what no
strategy can: a wrong setting never heals, and the same failure of the job's own code three times
in a row means that it will happen for ever (a poison row, a bug). The job then fails with that
cause, however long its delays have become. What the world breaks (a killed worker, an unreachable
server) is tried again without end. A person who chose a number of restarts meant that number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from engine.cluster.jobs.restart_strategies import ExponentialDelay, Strategy
from engine.errors import Domain

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


@dataclass(slots=True)
class RestartPolicy:
    """Remembers the failures of one job, as far as the next decision needs them."""

    strategy: Strategy = field(default_factory=ExponentialDelay)
    chance: Random = field(default_factory=lambda: Random(0))  # noqa: S311  jitter, not a secret
    identical: int = 0
    last: Cause | None = None

    def on_failure(self, cause: Cause, now_ms: int) -> Restart | GiveUp:
        """Decide what follows a failure."""
        self.identical = self.identical + 1 if cause == self.last else 1
        self.last = cause
        delay_ms = self.strategy.on_failure(now_ms, self.chance)
        if _never_heals(cause):
            return GiveUp("starting again cannot help")
        if self._repeats(cause):
            return GiveUp(f"failed {self.identical} times in a row for the same reason")
        if delay_ms is None:
            return GiveUp(f"no restart is left: {self.strategy}")
        return Restart(delay_ms)

    def _repeats(self, cause: Cause) -> bool:
        """Whether it has failed so often for one reason that it always will."""
        if self.strategy.limited or self.identical < IDENTICAL_FAILURES:
            return False
        # The world changes; a damaged file does not.
        return cause.domain is not Domain.EXTERNAL or cause.name == "SnapshotCorrupt"


def _never_heals(cause: Cause) -> bool:
    """Whether a person has to change something first: a setting, but not a row."""
    return cause.domain is Domain.USER and cause.name != "FunctionError"
