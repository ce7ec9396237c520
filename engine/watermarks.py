"""Event time and watermarks of a source: declared once, computed per split.

    rows of a split, in order --stamp--> event_time, running maximum - bound = row watermark

Shapes   `stamp` adds `event_time` (Int64, µs), and `row_watermark` (Int64, µs) when some row is
         behind the watermark of its own split; it is null on the rows that are not.
Units    bound and idle_after are µs inside; people write "24h", a timedelta or µs.
Late     the row watermark counts the rows of the split up to and including the row itself, so
         neither batch size nor parallelism nor speed changes what is late.
Source   Akidau et al., The Dataflow Model, VLDB 2015; Flink's BoundedOutOfOrdernessWatermarks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.durations import Duration, format_duration, parse_duration
from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, ROW_WATERMARK, Micros
from engine.errors import ConfigError, FunctionError

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Units that an integer column of event time may have, in µs; nanoseconds are divided."""

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """Which column is event time, and how far rows may come out of order."""

    column: str
    bound: Micros
    idle_after: Micros | None = None
    unit: str = "us"
    """Unit of an integer column."""

    def start(self, watermark: Micros = MIN_TIME) -> SplitWatermarks:
        """Begin a split, or go on from the watermark that a snapshot holds."""
        return SplitWatermarks(self, watermark)

    def __str__(self) -> str:
        return f"{self.column}, at most {format_duration(self.bound)} out of order"


def bounded_out_of_orderness(
    bound: Duration, column: str, idle_after: Duration | None = None, unit: str = "us"
) -> WatermarkStrategy:
    """Expect rows at most `bound` behind the latest one of their split.

    >>> bounded_out_of_orderness("500ms", column="time").bound
    500000
    """
    if unit not in (*UNITS, "ns"):
        msg = f"unit of event time is not known: got {unit!r}; use one of s, ms, us, ns"
        raise ConfigError(msg)
    bound_us = parse_duration(bound, "bound of out-of-orderness")
    if bound_us < 0:
        msg = f"bound of out-of-orderness is negative: got {bound!r}; pass 0 or more"
        raise ConfigError(msg)
    idle_us = None if idle_after is None else parse_duration(idle_after, "idle_after")
    if idle_us is not None and idle_us <= 0:
        msg = f"idle_after must be positive: got {idle_after!r}; pass e.g. '1m', or leave it out"
        raise ConfigError(msg)
    return WatermarkStrategy(column, bound_us, idle_us, unit)


def monotonic(
    column: str, idle_after: Duration | None = None, unit: str = "us"
) -> WatermarkStrategy:
    """Expect the rows of each split in order of event time."""
    return bounded_out_of_orderness(0, column, idle_after, unit)


class SplitWatermarks:
    """Stamps the rows of one split, in order. Its whole state is one watermark."""

    def __init__(self, strategy: WatermarkStrategy, watermark: Micros) -> None:
        self._strategy = strategy
        self.watermark = watermark

    @property
    def newest(self) -> Micros | None:
        """The largest event time so far; None before the first row."""
        if self.watermark in (MIN_TIME, MAX_TIME):
            return None
        return Micros(self.watermark + self._strategy.bound)

    def stamp(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with `event_time`, and `row_watermark` if any is behind."""
        times = event_times(frame, self._strategy.column, self._strategy.unit)
        values = times.to_numpy()
        row_watermarks = np.maximum(
            np.maximum.accumulate(values) - self._strategy.bound, self.watermark
        )
        self.watermark = Micros(int(row_watermarks[-1]))
        stamped = frame.with_columns(times.alias(EVENT_TIME))
        behind = values < row_watermarks
        if not behind.any():
            return stamped
        return stamped.with_columns(_row_watermarks(row_watermarks, behind))


def event_times(frame: pl.DataFrame, column: str, unit: str = "us") -> pl.Series:
    """Return a column as µs since 1970 UTC; a time without zone counts as UTC.

    Raises FunctionError for a null.
    """
    series = frame.get_column(column)
    if series.null_count():
        at = int(series.is_null().arg_max() or 0)
        msg = (
            f"event time column {column!r} is null: row {_short(frame, at)}; fill or drop such "
            "rows in the source"
        )
        raise FunctionError(msg)
    match series.dtype:
        case pl.Datetime():
            return series.dt.cast_time_unit("us").to_physical()
        case pl.Date():
            return series.to_physical().cast(pl.Int64) * _DAY
        case dtype if dtype.is_integer():
            whole = series.cast(pl.Int64)
            return whole // 1_000 if unit == "ns" else whole * UNITS[unit]
        case dtype:
            msg = (
                f"event time column {column!r} is not a time: it has type {dtype}; use Datetime, "
                "Date or an integer with a unit"
            )
            raise ConfigError(msg)


def _row_watermarks(watermarks: NDArray[np.int64], behind: NDArray[np.bool_]) -> pl.Series:
    marks = pl.Series(ROW_WATERMARK, watermarks)
    nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(marks))
    return marks.zip_with(pl.Series(behind), nulls)


def _short(frame: pl.DataFrame, row: int) -> str:
    text = str(frame.row(row, named=True))
    return text if len(text) <= 200 else text[:200] + "…"
