"""Of a running job: its progress, its plan, how its sources read, and what one key has."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class SourceProgress(TypedDict):
    """How far one source is, µs; null is unknown."""

    uid: str
    name: str
    vertex: str
    watermark_us: int | None
    newest_us: int | None
    pending_rows: int | None
    idle: bool
    finished: bool


class Progress(TypedDict):
    """How far a job is in event time, µs; null is unknown."""

    at_ms: int
    event_time_us: int | None
    pending_rows: int | None
    sources: list[SourceProgress]


class EnginePlan(TypedDict):
    """The plan in the engine's own form, which may grow."""

    format_version: int
    hash: str
    name: str
    max_parallelism: int
    checkpoint_interval_ms: int | None
    vertices: list[dict[str, object]]
    edges: list[dict[str, object]]
    warnings: list[str]
    state_backend: str


class EnginePlanAnswer(TypedDict):
    """A plan."""

    plan: EnginePlan


class BatchStatistics(TypedDict):
    """Of all batches, and by step: lists of equal length, null where there was no batch."""

    summary: dict[str, float | None]
    series: dict[str, list[float | None]]


class SourceStatistics(BatchStatistics):
    """Of one source."""

    uid: str
    name: str
    vertex: str


class Statistics(TypedDict):
    """Streaming statistics."""

    from_ms: int
    to_ms: int
    step_s: int
    time_ms: list[int]
    job: BatchStatistics
    sources: list[SourceStatistics]


class ReadLimit(TypedDict):
    """Of one source; null is no limit."""

    uid: str
    name: str
    vertex: str
    rows_per_second: float | None
    times_real_time: float | None


class ReadLimits(TypedDict):
    """Of each source."""

    sources: list[ReadLimit]


class ReadLimitBody(TypedDict):
    """Of one source, or of each."""

    rowsPerSecond: float | None
    timesRealTime: NotRequired[float | None]
    source: NotRequired[str | None]


class Bounds(TypedDict):
    """Of a vertex's parallelism."""

    lowerBound: NotRequired[int]
    upperBound: int


class Requirements(TypedDict):
    """Of a vertex."""

    parallelism: Bounds


class RescaleBody(TypedDict):
    """Either of all, or by vertex id or operator uid."""

    parallelism: NotRequired[int | None]
    vertices: NotRequired[dict[str, int] | None]
    triggerId: NotRequired[str | None]
