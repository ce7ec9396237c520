"""Streaming statistics and read limits as a client gets them.

Units    delays are ms, times epoch ms, rates rows per second; None where there was no batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """One source operator, or all of a job; figures by name, as `docs/statistics.md` has them."""

    summary: Mapping[str, float | None]
    series: Mapping[str, Sequence[float | None]]
    """Oldest first, one per step."""
    uid: str | None = None
    """None: all sources together."""
    name: str | None = None
    vertex_id: str | None = None

    @classmethod
    def of(cls, body: JsonObject) -> SourceFigures:
        """Read `job`, or an entry of `sources`."""
        names = (body.get("uid"), body.get("name"), body.get("vertex"))
        return cls(body["summary"], body["series"], *names)


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """How fast one source operator may read, over all its subtasks."""

    uid: str
    name: str
    vertex_id: str
    rows_per_second: float | None
    """None: no limit; 0: it is paused."""
    times_real_time: float | None
    """How fast event time may pass; None: no limit."""

    @classmethod
    def of(cls, body: JsonObject) -> ReadLimit:
        """Read an entry of `sources`."""
        rows, times = body["rows_per_second"], body["times_real_time"]
        return cls(body["uid"], body["name"], body["vertex"], rows, times)


@dataclass(frozen=True, slots=True)
class Statistics:
    """All sources of a job, over one stretch of time."""

    from_ms: int
    to_ms: int
    step_s: int
    time_ms: Sequence[int]
    """When each step began."""
    job: SourceFigures
    sources: tuple[SourceFigures, ...]

    @classmethod
    def of(cls, body: JsonObject) -> Statistics:
        """Read `/headwater/jobs/:id/statistics`."""
        return cls(
            body["from_ms"],
            body["to_ms"],
            body["step_s"],
            body["time_ms"],
            SourceFigures.of(body["job"]),
            tuple(SourceFigures.of(source) for source in body["sources"]),
        )
