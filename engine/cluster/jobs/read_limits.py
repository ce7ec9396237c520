"""How fast the sources of a job may read: settings that can be changed while it runs.

    headwater.read-limit = "1000"                      every source
                         = "flights=1000; control=5"   these ones

Units    rows per second of one source operator, over all its subtasks; 0 pauses it.
Order    a change is stored before it is sent, so that it outlives every process.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from engine.cluster.jobs.attempt import Attempt
from engine.errors import ConfigError
from engine.graph.plan import Plan
from engine.rest.model.sources import SourceLimit
from engine.runtime.control import ReadLimit

READ_LIMIT = "headwater.read-limit"


class ReadLimits:
    """The limits of the sources of one job."""

    def __init__(self, plan: Plan, settings: Mapping[str, str]) -> None:
        """Raises ConfigError when the setting is no limit, or names no source."""
        self._plan = plan
        self.rates: Mapping[str, float | None] = {}
        """Of every source that has, or had, a limit, by uid."""
        for part in settings.get(READ_LIMIT, "").split(";"):
            if part.strip():
                uid, _, rate = part.rpartition("=")
                self.rates = self.changed(uid.strip() or None, _rate(rate.strip()))

    def changed(self, uid: str | None, rate: float | None) -> Mapping[str, float | None]:
        """All rates, with that of one source, or of each, changed. Raises ConfigError."""
        known = [vertex.operators[0].uid for vertex in self._plan.sources]
        if uid is not None and uid not in known:
            msg = f"source {uid!r} is not in the job: it has {', '.join(known)}; name one of them"
            raise ConfigError(msg)
        return {**self.rates, **dict.fromkeys(known if uid is None else [uid], rate)}

    def limits(self) -> tuple[SourceLimit, ...]:
        """Every source with its limit, if it has one."""
        return tuple(
            SourceLimit(head.uid, head.name, vertex.id, self.rates.get(head.uid))
            for vertex in self._plan.sources
            for head in vertex.operators[:1]
        )

    def messages(self, attempt: Attempt) -> list[ReadLimit]:
        """What workers are to be told: again whenever a subtask of a source has read all it had."""
        return [
            ReadLimit(
                vertex.id,
                self.rates[uid],
                sum(
                    not task.input_ended
                    for id_, task in attempt.tasks.items()
                    if id_.vertex == vertex.id
                ),
            )
            for vertex in self._plan.sources
            if (uid := vertex.operators[0].uid) in self.rates
        ]


def setting_of(rates: Mapping[str, float | None]) -> str:
    """Rates as the setting has them.

    >>> setting_of({"flights": 1000.0, "control": None, "orders": 0.5})
    'flights=1000; orders=0.5'
    """
    limits = ((uid, rate) for uid, rate in sorted(rates.items()) if rate is not None)
    return "; ".join(f"{uid}={rate:.15g}" for uid, rate in limits)


def _rate(text: str) -> float | None:
    if text == "none":
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    check_rate(rate, text)
    return rate


def check_rate(rate: float, given: object) -> None:
    """Refuse what is no rate. Raises ConfigError."""
    if not (isfinite(rate) and rate >= 0):
        msg = (
            f"read limit must be rows per second, 0 or more, or none: got {given!r}; "
            "pass e.g. 1000, or source=1000"
        )
        raise ConfigError(msg)
