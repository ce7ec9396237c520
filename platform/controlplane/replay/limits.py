"""How fast a replay may read: rows per second, a multiple of real time, or as fast as it can.

5000     rows per second, all sources and subtasks together
60x      an hour of event time in a minute, at most
none     no limit
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from controlplane.access.errors import invalid


@dataclass(frozen=True, slots=True)
class Limit:
    """One of both, or neither."""

    rows_per_second: float | None = None
    times_real_time: float | None = None

    def check(self) -> None:
        """Refuse what is no limit. Raises Refused."""
        given = [one for one in (self.rows_per_second, self.times_real_time) if one is not None]
        if len(given) > 1:
            msg = "read limit must be rows per second or times real time: got both; give one"
            raise invalid(msg, "rows_per_second")
        if not all(isfinite(one) and one > 0 for one in given):
            what = "rows per second" if self.times_real_time is None else "times real time"
            msg = f"read limit must be {what}, more than 0: got {given[0]:g}"
            raise invalid(msg, "rows_per_second")

    def __str__(self) -> str:
        """As people write it, and `limit_of` reads it; empty: none."""
        if self.times_real_time is not None:
            return f"{self.times_real_time:.15g}x"
        return "" if self.rows_per_second is None else f"{self.rows_per_second:.15g}"

    @property
    def words(self) -> str:
        """How it reads."""
        if self.times_real_time is not None:
            return f"at most {self.times_real_time:,.15g}× real time"
        if self.rows_per_second is not None:
            return f"at most {self.rows_per_second:,.15g} rows a second"
        return "as fast as it can"


def limit_of(text: str) -> Limit:
    """Read a limit as people write it. Raises ValueError.

    >>> limit_of("60x"), limit_of("5000").words
    (Limit(rows_per_second=None, times_real_time=60.0), 'at most 5,000 rows a second')
    """
    given = text.strip()
    if given in {"", "none"}:
        return Limit()
    for mark in ("x", "×"):
        if given.endswith(mark):
            return Limit(None, float(given.removesuffix(mark)))
    return Limit(float(given))
