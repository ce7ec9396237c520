"""What the flights job must put out, computed in plain Polars, and what it did put out.

    truth(rule)                     the year, whole
    truth_from(rule, then, cut)     the windows that were open at a savepoint or came after it, when
                                    `rule` counted the rows before it and `then` those after

Needs   nothing of the engine: a fault of the engine cannot hide in its own measure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDING = EXAMPLES / "data" / "nyc2013" / "flights.parquet"

Rule = Callable[[pl.Expr], pl.Expr]
"""From the delay, which is null for a cancelled flight, to the one that is counted."""

KEYS = ["carrier", "origin"]
ORDER = ["window_start", *KEYS]


def v1(delay: pl.Expr) -> pl.Expr:
    """The honest bug: a cancelled flight counts as one that left on time."""
    return delay.fill_null(0)


def v2(delay: pl.Expr) -> pl.Expr:
    """The correction: a cancelled flight has no delay."""
    return delay


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a savepoint cuts the stream: rows read of each origin, and the watermark reached."""

    rows: Mapping[str, int]
    watermark: datetime


def flights(recording: Path = RECORDING) -> pl.DataFrame:
    """The flights in the order of the stream, with the place of each in its split."""
    scheduled = pl.col("time_hour") + pl.duration(minutes="minute")
    return (
        pl.read_parquet(recording)
        .with_columns(scheduled.alias("scheduled"))
        .sort("scheduled", maintain_order=True)
        .with_columns(
            (pl.col("scheduled") + pl.duration(minutes=pl.col("dep_delay").fill_null(0))).alias(
                "departure"
            ),
            pl.int_range(pl.len()).over("origin").alias("row"),
        )
    )


def truth(rule: Rule, recording: Path = RECORDING) -> pl.DataFrame:
    """The daily table of the whole year, or of another recording."""
    return _daily(flights(recording).with_columns(rule(pl.col("dep_delay")).alias("delay")))


def truth_from(rule: Rule, then: Rule, cut: Cut) -> pl.DataFrame:
    """The daily table of the windows that had not fired at the cut."""
    place = pl.col("origin").replace_strict(dict(cut.rows), return_dtype=pl.Int64)
    before = pl.col("row") < place
    delay = pl.when(before).then(rule(pl.col("dep_delay"))).otherwise(then(pl.col("dep_delay")))
    daily = _daily(flights().with_columns(delay.alias("delay")))
    return daily.filter(pl.col("window_end") > cut.watermark)


def read_output(folder: Path) -> pl.DataFrame:
    """All finished files of the job, in the order of the truth."""
    files = sorted(folder.rglob("[!.]*.parquet"))
    frames = [pl.read_parquet(file) for file in files]
    return pl.concat(frames).sort(ORDER)


def _daily(rows: pl.DataFrame) -> pl.DataFrame:
    start = pl.col("departure").dt.truncate("1d").alias("window_start")
    return (
        rows.group_by(*KEYS, start)
        .agg(
            (start.first() + pl.duration(days=1)).alias("window_end"),
            pl.len().cast(pl.Int64).alias("flights"),
            pl.col("dep_delay").is_null().sum().cast(pl.Int64).alias("cancelled"),
            # The sum of whole minutes is exact, so this is the mean to the last bit.
            (pl.col("delay").sum() / pl.col("delay").count()).alias("mean_delay"),
            pl.col("delay").max().alias("max_delay"),
        )
        .with_columns(pl.col("mean_delay").fill_nan(None))
        .sort(ORDER)
    )
