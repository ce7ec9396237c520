"""How fast the sources of a job may read: settings that can be changed while it runs.

    headwater.read-limit = "1000"                      every source
                         = "flights=1000; control=60x" these ones

Units    rows per second of one source operator, over all its subtasks; 0 pauses it. With an x it is
         how many times as fast as real time event time may pass.
Order    a change is stored before it is sent, so that it outlives every process.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

from engine.cluster.jobs.attempt import Attempt
from engine.errors import ConfigError
from engine.graph.plan import Plan
from engine.rest.model.sources import SourceLimit
from engine.runtime.control import ReadLimit

READ_LIMIT = "headwater.read-limit"


class Limit(NamedTuple):
    """Of one source; None: no limit."""

    rows_per_second: float | None = None
    times_real_time: float | None = None


NONE = Limit()


class ReadLimits:
    """The limits of the sources of one job."""

    def __init__(self, plan: Plan, settings: Mapping[str, str]) -> None:
        """Raises ConfigError when the setting is no limit, or names no source."""
        self._plan = plan
        self.rates: Mapping[str, Limit] = {}
        """Of every source that has, or had, a limit, by uid."""
        for part in settings.get(READ_LIMIT, "").split(";"):
            if part.strip():
                uid, _, rate = part.rpartition("=")
                self.rates = self.changed(uid.strip() or None, _limit(rate.strip()))

    def changed(self, uid: str | None, limit: Limit) -> Mapping[str, Limit]:
        """All limits, with that of one source, or of each, changed. Raises ConfigError.

        Event time can only be held back where there is some.
        """
        known = [vertex.operators[0].uid for vertex in self._plan.sources]
        if uid is not None and uid not in known:
            msg = f"source {uid!r} is not in the job: it has {', '.join(known)}; name one of them"
            raise ConfigError(msg)
        asked = known if uid is None else [uid]
        if limit.times_real_time is not None:
            asked = [one for one in asked if one in self._timed]
            if not asked:
                what = "the job's sources have" if uid is None else f"source {uid!r} has"
                msg = f"{what} no event time, so no multiple of real time: limit rows per second"
                raise ConfigError(msg)
        return {**self.rates, **dict.fromkeys(asked, limit)}

    @property
    def _timed(self) -> set[str]:
        heads = (vertex.operators[0] for vertex in self._plan.sources)
        return {head.uid for head in heads if "watermarks" in head.description}

    def limits(self) -> tuple[SourceLimit, ...]:
        """Every source with its limit, if it has one."""
        return tuple(
            SourceLimit(head.uid, head.name, vertex.id, *self.rates.get(head.uid, NONE))
            for vertex in self._plan.sources
            for head in vertex.operators[:1]
        )

    def messages(self, attempt: Attempt) -> list[ReadLimit]:
        """What workers are to be told: again whenever a subtask of a source has read all it had."""
        return [
            ReadLimit(
                vertex.id,
                self.rates[uid].rows_per_second,
                sum(
                    not task.input_ended
                    for id_, task in attempt.tasks.items()
                    if id_.vertex == vertex.id
                ),
                self.rates[uid].times_real_time,
            )
            for vertex in self._plan.sources
            if (uid := vertex.operators[0].uid) in self.rates
        ]


def setting_of(limits: Mapping[str, Limit]) -> str:
    """Limits as the setting has them.

    >>> setting_of({"flights": Limit(1000.0), "control": NONE, "orders": Limit(None, 0.5)})
    'flights=1000; orders=0.5x'
    """
    parts = []
    for uid, (rows, times) in sorted(limits.items()):
        if rows is not None:
            parts.append(f"{uid}={rows:.15g}")
        elif times is not None:
            parts.append(f"{uid}={times:.15g}x")
    return "; ".join(parts)


def _limit(text: str) -> Limit:
    if text == "none":
        return NONE
    number, is_speed = (text[:-1], True) if text.endswith("x") else (text, False)
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    return checked_limit(None if is_speed else value, value if is_speed else None, text)


def checked_limit(
    rows_per_second: float | None, times_real_time: float | None, given: object = None
) -> Limit:
    """One of both, or neither. Raises ConfigError."""
    rows, times = rows_per_second, times_real_time
    right = rows is None or times is None
    right = right and (rows is None or (isfinite(rows) and rows >= 0))
    if not (right and (times is None or (isfinite(times) and times > 0))):
        shown = given or (f"{times:g}x" if rows is None and times is not None else rows)
        msg = (
            "read limit must be rows per second, 0 or more, or times real time, or none: got "
            f"{shown!r}; pass e.g. 1000, 60x, or source=1000"
        )
        raise ConfigError(msg)
    return Limit(rows, times)
