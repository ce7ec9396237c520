"""What has been written, as tables that are scanned and not read whole.

    files    those of them that are asked for; columns that some lack are null there
    points   tags, fields and time of one measurement in a stretch, from the series store

Errors   OutputUnreadable, in one sentence: a folder that cannot be read, a file that is torn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.store import embedded_store

MOST_POINTS = 1_000_000
"""Of one field and tag set: more than the store keeps."""


class OutputUnreadable(Exception):
    """What a sink has written cannot be read now."""


def committed(folder: Path) -> list[Path]:
    """The files that readers may see, in order."""
    return sorted(
        file
        for file in folder.rglob("*.parquet")
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


def scan_files(files: list[Path]) -> pl.LazyFrame:
    """Their rows; at least one file."""
    return pl.scan_parquet(files, missing_columns="insert", extra_columns="ignore")


def points_of(
    measurement: str,
    bucket: str,
    tags: Sequence[str],
    stretch_ms: tuple[float, float],
    store: SeriesStore | None = None,
) -> pl.LazyFrame:
    """The points of a measurement from a time to another, a row per tag set and time."""
    known = store or embedded_store()
    whole: pl.DataFrame | None = None
    for field in known.fields(bucket, measurement):
        column = _column(known, bucket, measurement, field, tags, stretch_ms)
        on = [name for name in column.columns if name != field]
        whole = (
            column
            if whole is None
            else whole.join(column, on=on, how="full", coalesce=True, nulls_equal=True)
        )
    nothing = pl.DataFrame(schema={"time": pl.Int64, **dict.fromkeys(tags, pl.String)})
    return (nothing if whole is None else whole).lazy()


def _column(
    store: SeriesStore,
    bucket: str,
    measurement: str,
    field: str,
    keys: Sequence[str],
    stretch_ms: tuple[float, float],
) -> pl.DataFrame:
    start_ms, stop_ms = stretch_ms
    found = store.query(
        bucket, measurement, field, start_ms=start_ms, stop_ms=stop_ms, limit=MOST_POINTS
    )
    tags = sorted({*keys, *(tag for one in found for tag in one.tags)})
    empty = {"time": pl.Int64, field: pl.Float64, **dict.fromkeys(tags, pl.String)}
    parts = [
        pl.DataFrame(
            {
                "time": [round(at * 1000) for at, _ in one.points],
                field: [value for _, value in one.points],
            },
            strict=False,
        ).with_columns(pl.lit(one.tags.get(tag), dtype=pl.String).alias(tag) for tag in tags)
        for one in found
    ]
    return pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame(schema=empty)
