"""Series as they are read: one interface, for the embedded store and for InfluxDB.

    charts ──query──▶ SeriesSource ◀── embedded.store.SeriesStore | influx.InfluxStore

Units    times are epoch ms at this interface.
Order    series come sorted by their tags, points by time.
Shapes   ranges are half-open. With a step, the points of each [n * step, (n + 1) * step) become
         one, at the start of the step; steps without points are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from controlplane.metrics.line_protocol import FieldValue, Point

Where = Mapping[str, str | Sequence[str]]

LIMIT = 5_000
"""Points of one series at most: more than any screen has pixels."""

NANOS_PER_MS = 1_000_000
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

STEPS_MS = (
    *(SECOND_MS * n for n in (1, 2, 5, 10, 30)),
    *(MINUTE_MS * n for n in (1, 2, 5, 10, 30)),
    *(HOUR_MS * n for n in (1, 2, 4, 6, 12)),
    DAY_MS,
)
"""Steps that people read off an axis, and that roll-ups divide."""


class Aggregate(StrEnum):
    """How the points of one step become one."""

    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one tag set, as (epoch ms, value)."""

    tags: Mapping[str, str]
    points: list[tuple[float, FieldValue]]


@dataclass(frozen=True, slots=True)
class Refused:
    """A point that was not kept, or not all of it."""

    index: int
    reason: str
    beyond_retention: bool = False


class SeriesAway(Exception):
    """The store does not answer; in one sentence, why."""


class SeriesSource(Protocol):
    """Where charts read."""

    def query(
        self,
        bucket: str,
        measurement: str,
        field: str,
        *,
        where: Where | None = None,
        start_ms: float | None = None,
        stop_ms: float | None = None,
        step_ms: int | None = None,
        aggregate: Aggregate | str = Aggregate.MEAN,
        limit: int = LIMIT,
    ) -> list[Series]:
        """One series per tag set, over [start, stop); the newest `limit` points of each.

        `where` keeps the series whose tag has that value, or one of those. Text has no steps.
        """

    def measurements(self, bucket: str) -> list[str]:
        """What has been written to."""

    def fields(self, bucket: str, measurement: str) -> dict[str, str]:
        """Its fields and their types: float, integer, boolean, string."""

    def tag_sets(self, bucket: str, measurement: str) -> list[dict[str, str]]:
        """The tag sets of its series."""

    def span_ms(self, bucket: str, measurement: str) -> tuple[float, float] | None:
        """Times of its first and last point."""


class SeriesKeeper(SeriesSource, Protocol):
    """A store that also takes points."""

    def write(self, bucket: str, points: Sequence[Point]) -> list[Refused]:
        """Keep the points, but for those that are returned. Raises SeriesAway."""

    def close(self) -> None:
        """Close connections that are not in use."""


def ns_of(time_ms: float | None, otherwise: int = 0) -> int:
    """A time of the interface as stores and points have it; None is `otherwise`."""
    return otherwise if time_ms is None else int(time_ms * NANOS_PER_MS)


def ms_of(time_ns: int) -> float:
    """The other way; an int where nothing is lost.

    >>> ms_of(2_000_000), ms_of(2_500_000)
    (2, 2.5)
    """
    whole, rest = divmod(time_ns, NANOS_PER_MS)
    return whole if rest == 0 else time_ns / NANOS_PER_MS


def step_for(span_ms: float, points: int) -> int:
    """The finest step with which a span has at most so many points.

    >>> step_for(7 * DAY_MS, 300) / HOUR_MS, step_for(600_000, 300), step_for(1, 300)
    (1.0, 2000, 1000)
    """
    return next((step for step in STEPS_MS if span_ms <= step * points), STEPS_MS[-1])
