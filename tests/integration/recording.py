"""Input for the integration tests, and the plain answer to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

ROWS = 24_000
SPLITS = 4
HOURS = 40
START_US = 1_700_000_000_000_000 // 3_600_000_000 * 3_600_000_000


def write(path: Path) -> Path:
    """Write a table of `HOURS` hours: late by up to ten minutes, in four splits."""
    random = np.random.default_rng(2013)
    at = START_US + np.sort(random.integers(0, HOURS * 3_600_000_000, ROWS))
    frame = pl.DataFrame(
        {
            "at": at,
            "known": at + random.integers(0, 590_000_000, ROWS),
            "split": random.integers(0, SPLITS, ROWS).astype(str),
            "key": random.integers(0, 50, ROWS),
            "value": random.normal(size=ROWS),
        }
    )
    frame.with_columns(pl.col("at", "known").cast(pl.Datetime("us", "UTC"))).write_parquet(path)
    return path


def expected(path: Path) -> pl.DataFrame:
    """What the job must write: counts exactly, and which windows there are."""
    rows = pl.read_parquet(path).filter(pl.col("value") >= 0)
    end = pl.col("at").dt.truncate("1h") + pl.duration(hours=1)
    return (
        rows.group_by(end.alias("window_end"), "key")
        .agg(n=pl.len().cast(pl.Int64), total=pl.col("value").sum())
        .sort("window_end", "key")
    )


def visible(folder: Path) -> Iterator[Path]:
    """Files of a sink's folder that a reader sees."""
    return (file for file in folder.rglob("*.parquet") if not file.name.startswith("."))


def written(folder: Path) -> pl.DataFrame:
    """What the job wrote."""
    tables = [pl.read_parquet(file) for file in visible(folder)]
    return pl.concat(tables).select("window_end", "key", "n", "total").sort("window_end", "key")
