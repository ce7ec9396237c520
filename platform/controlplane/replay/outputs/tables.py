"""What has been written, as tables that are scanned and not read whole.

    files    every committed file of a folder, whatever bucket it lies in
    points   tags, fields and time of one measurement, from the series store

Errors   OutputUnreadable, in one sentence: a folder that cannot be read, a file that is torn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.store import embedded_store
from controlplane.replay.outputs.targets import FILES, Target

MOST_POINTS = 1_000_000
"""Of one field and tag set: more than the store keeps."""


class OutputUnreadable(Exception):
    """What a sink has written cannot be read now."""


def table_of(target: Target, place: str) -> pl.LazyFrame | None:
    """What lies at a place of that kind; None while there is nothing. Raises OutputUnreadable."""
    read: Callable[[str], pl.LazyFrame | None] = (
        files_at if target.kind == FILES else lambda name: points_of(name, target.bucket)
    )
    try:
        return read(place)
    except (OSError, pl.exceptions.PolarsError) as error:
        msg = f"output {place} cannot be read: {str(error).strip().splitlines()[0]}"
        raise OutputUnreadable(msg) from error


def committed(folder: Path) -> list[Path]:
    """The files that readers may see, in order."""
    return sorted(
        file
        for file in folder.rglob("*.parquet")
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )


def files_at(place: str) -> pl.LazyFrame | None:
    """The rows of a folder; columns that some files lack are null there."""
    files = committed(Path(place))
    if not files:
        return None
    return pl.scan_parquet(files, missing_columns="insert", extra_columns="ignore")


def points_of(
    measurement: str, bucket: str, store: SeriesStore | None = None
) -> pl.LazyFrame | None:
    """The points of a measurement, a row per tag set and time."""
    known = store or embedded_store()
    whole: pl.DataFrame | None = None
    for field in known.fields(bucket, measurement):
        column = _column(known, bucket, measurement, field)
        on = [name for name in column.columns if name != field]
        whole = (
            column
            if whole is None
            else whole.join(column, on=on, how="full", coalesce=True, nulls_equal=True)
        )
    return None if whole is None else whole.lazy()


def _column(store: SeriesStore, bucket: str, measurement: str, field: str) -> pl.DataFrame:
    found = store.query(bucket, measurement, field, limit=MOST_POINTS)
    tags = sorted({tag for one in found for tag in one.tags})
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
    return (
        pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame({"time": [], field: []})
    )
