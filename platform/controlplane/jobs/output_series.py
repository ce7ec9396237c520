"""What a job writes to the series store: fields, tags, how much, how new, and the last points.

Units    times are epoch ms of event time.
Cost     of a measurement with more than SERIES series no points are read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from controlplane.jobs.output_files import Rows
from controlplane.metrics.store import OUTPUTS, series_store
from controlplane.moments import moment

SERIES = 150
POINTS = 10


@dataclass(frozen=True, slots=True)
class Points:
    """One measurement."""

    fields: tuple[tuple[str, str], ...] = ()
    """Name and type."""
    tags: tuple[str, ...] = ()
    series: int = 0
    first_ms: float | None = None
    newest_ms: float | None = None
    rows: Rows | None = None
    reason: str = ""


def look_at(measurement: str, *, with_rows: bool = True) -> Points:
    """What is known of a measurement."""
    store = series_store()
    span = store.span_ms(OUTPUTS, measurement)
    if span is None:
        return Points(reason="no point of that measurement is in the series store of this platform")
    fields = store.fields(OUTPUTS, measurement)
    sets = store.tag_sets(OUTPUTS, measurement)
    few = len(sets) <= SERIES
    return Points(
        fields=tuple(sorted(fields.items())),
        tags=tuple(sorted({key for tags in sets for key in tags})),
        series=len(sets),
        first_ms=span[0],
        newest_ms=span[1],
        rows=_last_points(measurement, sorted(fields), span[1]) if with_rows and few else None,
        reason="" if few else f"of {len(sets)} series no single points are shown",
    )


def _last_points(measurement: str, fields: list[str], newest_ms: float) -> Rows:
    """The newest points, fields of one series and moment in one row."""
    found: defaultdict[tuple[float, tuple[tuple[str, str], ...]], dict[str, str]] = defaultdict(
        dict
    )
    for field in fields:
        for series in series_store().query(OUTPUTS, measurement, field, limit=POINTS):
            tags = tuple(sorted(series.tags.items()))
            for at, value in series.points[-POINTS:]:
                found[at, tags][field] = f"{value:.6g}" if isinstance(value, float) else str(value)
    newest = sorted(found)[-POINTS:]
    keys = sorted({key for _, tags in newest for key, _ in tags})
    columns = (
        ("time", "event time"),
        *((key, "tag") for key in keys),
        *((f, "field") for f in fields),
    )
    rows = tuple(
        (
            moment(at).isoformat(),
            *(dict(tags).get(key, "") for key in keys),
            *(found[at, tags].get(field, "") for field in fields),
        )
        for at, tags in newest
    )
    return Rows(columns, rows, int(newest_ms))
