"""Streaming statistics of a job: what its source batches came to, over time.

    StreamingStatistics ─▶ SourceStatistics, one per source ─▶ BatchFigures: summary, and per step

Units    delays are ms, times epoch ms, rates rows per second. `docs/statistics.md` defines each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Delay:
    """Over the batches of a stretch of time, each counted once."""

    mean_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """What the batches of a stretch of time came to; delays are None when there was none."""

    batches: int
    rows: int
    rows_per_second: float
    queue: Delay | None
    processing: Delay | None
    total: Delay | None
    headroom: float | None
    """How many times the rows it could read in the same time; None when nothing was read."""


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """One source operator, or all of a job."""

    summary: BatchFigures
    series: tuple[BatchFigures, ...]
    """Oldest first, one per step."""
    uid: str | None = None
    """None: all sources together."""
    name: str | None = None
    vertex_id: str | None = None


@dataclass(frozen=True, slots=True)
class StreamingStatistics:
    """All sources of a job, over one stretch of time."""

    from_ms: int
    to_ms: int
    step_s: int
    job: SourceStatistics
    sources: tuple[SourceStatistics, ...]
