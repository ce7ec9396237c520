"""What the source batches of a running job came to, asked of the engine when somebody looks.

Units    delays are ms, times epoch ms, rates rows per second; None where there was no batch.
Source   the engine's `docs/statistics.md` defines each figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.backends.asked import Answer, asked
from controlplane.backends.models import Cluster
from engine.rest.answers.statistics import SourceFigures, Statistics
from engine.rest.client import EngineClient

Series = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class SourceBatches:
    """One source, or all of a job together."""

    uid: str
    """Empty: all sources together."""
    name: str
    summary: Mapping[str, float | None]
    series: Series
    """Oldest first, one value per step."""
    limit: float | None = None
    """Rows per second that it may read at most; None: as fast as it can."""


@dataclass(frozen=True, slots=True)
class StreamingFigures:
    """All sources of a job over one stretch of time."""

    from_ms: int
    to_ms: int
    step_s: int
    time_ms: Sequence[int]
    job: SourceBatches
    sources: tuple[SourceBatches, ...]


def streaming_figures(
    cluster: Cluster, engine_job_id: str, window_s: int, step_s: int
) -> Answer[StreamingFigures]:
    """The last `window_s` seconds, by steps."""

    def question(engine: EngineClient) -> StreamingFigures:
        found = engine.statistics(engine_job_id, window_s, step_s)
        limits = {one.uid: one.rows_per_second for one in engine.read_limits(engine_job_id)}
        return _figures(found, limits)

    return asked(cluster, ("statistics", engine_job_id, window_s, step_s), question)


def _figures(found: Statistics, limits: Mapping[str, float | None]) -> StreamingFigures:
    return StreamingFigures(
        from_ms=found.from_ms,
        to_ms=found.to_ms,
        step_s=found.step_s,
        time_ms=found.time_ms,
        job=_source(found.job, None),
        sources=tuple(_source(one, limits.get(one.uid or "")) for one in found.sources),
    )


def _source(found: SourceFigures, limit: float | None) -> SourceBatches:
    return SourceBatches(found.uid or "", found.name or "", found.summary, found.series, limit)
