"""Columns of event time, as microseconds since 1970 UTC."""

from __future__ import annotations

import polars as pl

from engine.errors import ConfigError, FunctionError

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Units that an integer column of event time may have, in µs; nanoseconds are divided."""

_DAY = 86_400_000_000


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


def _short(frame: pl.DataFrame, row: int) -> str:
    text = str(frame.row(row, named=True))
    return text if len(text) <= 200 else text[:200] + "…"
