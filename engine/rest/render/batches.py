"""What runs, as JSON: read limits; statistics, a list per figure.

Shapes   a series has lists of equal length, oldest first; null where there was no batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.rest.model.sources import SourceLimit
from engine.rest.model.statistics import (
    BatchFigures,
    Delay,
    SourceStatistics,
    StreamingStatistics,
)

FIGURES: Final[Mapping[str, Callable[[BatchFigures], float | None]]] = {
    "batches": lambda of: of.batches,
    "rows": lambda of: of.rows,
    "rows_per_second": lambda of: of.rows_per_second,
    "queue_delay_ms": lambda of: _mean(of.queue),
    "queue_delay_max_ms": lambda of: _max(of.queue),
    "processing_time_ms": lambda of: _mean(of.processing),
    "processing_time_max_ms": lambda of: _max(of.processing),
    "total_delay_ms": lambda of: _mean(of.total),
    "total_delay_max_ms": lambda of: _max(of.total),
    "headroom": lambda of: of.headroom,
}


def statistics(known: StreamingStatistics) -> dict[str, object]:
    """The body of `/headwater/jobs/:id/statistics`."""
    return {
        "from_ms": known.from_ms,
        "to_ms": known.to_ms,
        "step_s": known.step_s,
        "time_ms": list(range(known.from_ms, known.to_ms, known.step_s * 1000)),
        "job": _source(known.job),
        "sources": [
            {"uid": source.uid, "name": source.name, "vertex": source.vertex_id} | _source(source)
            for source in known.sources
        ],
    }


def read_limits(known: Sequence[SourceLimit]) -> dict[str, object]:
    """The body of `/headwater/jobs/:id/read-limits`."""
    return {
        "sources": [
            {
                "uid": source.uid,
                "name": source.name,
                "vertex": source.vertex_id,
                "rows_per_second": source.rows_per_second,
                "times_real_time": source.times_real_time,
            }
            for source in known
        ]
    }


def _source(source: SourceStatistics) -> dict[str, object]:
    return {
        "summary": {name: figure(source.summary) for name, figure in FIGURES.items()},
        "series": {
            name: [figure(step) for step in source.series] for name, figure in FIGURES.items()
        },
    }


def _mean(delay: Delay | None) -> float | None:
    return None if delay is None else round(delay.mean_ms, 3)


def _max(delay: Delay | None) -> float | None:
    return None if delay is None else round(delay.max_ms, 3)
