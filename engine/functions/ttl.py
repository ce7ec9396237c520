"""Time to live: how long a state is kept after it was last written.

Order    by event time a value is gone for a row when the row's time has reached the time of the
         write plus the TTL. Rows, not clocks, decide, so that no restart or speed can be seen. The
         time of a late row is the watermark that it came behind.
         By processing time the clock decides: exempt from the law of the same output.
Cost     one more column of state, and an entry in an agenda for each key until its time has come:
         in memory, or with RocksDB on disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.durations import Duration, positive_duration
from engine.elements import Micros
from engine.errors import GraphError


class TimeDomain(StrEnum):
    """Which clock is meant."""

    EVENT_TIME = "event_time"
    PROCESSING_TIME = "processing_time"


@dataclass(frozen=True, slots=True, init=False)
class Ttl:
    """How long a state lives.

    >>> Ttl("1h"), Ttl("5m", domain="processing_time", refresh_on_read=True)
    (Ttl(3600000000 µs of event_time), Ttl(300000000 µs of processing_time, refreshed by reads))
    """

    after: Micros
    domain: TimeDomain
    refresh_on_read: bool
    """Whether reading a value lets it live on, as writing it does."""

    def __init__(
        self,
        after: Duration,
        *,
        domain: TimeDomain | str = TimeDomain.EVENT_TIME,
        refresh_on_read: bool = False,
    ) -> None:
        """`after`: a length of time (a number is µs). Raises ConfigError, GraphError."""
        length = positive_duration(after, "ttl", "Ttl('1h'), or none to keep all")
        if domain not in list(TimeDomain):
            known = " or ".join(repr(each.value) for each in TimeDomain)
            msg = f"ttl has an unknown time domain: got {domain!r}; pass {known}"
            raise GraphError(msg)
        object.__setattr__(self, "after", length)
        object.__setattr__(self, "domain", TimeDomain(domain))
        object.__setattr__(self, "refresh_on_read", refresh_on_read)

    def __repr__(self) -> str:
        reads = ", refreshed by reads" if self.refresh_on_read else ""
        return f"Ttl({self.after} µs of {self.domain}{reads})"


TtlLike = Ttl | Duration
"""How authors write a TTL: a length of event time, or a `Ttl`."""


def as_ttl(given: TtlLike | None) -> Ttl | None:
    """The TTL that an author wrote. Raises ConfigError, GraphError."""
    return given if given is None or isinstance(given, Ttl) else Ttl(given)
