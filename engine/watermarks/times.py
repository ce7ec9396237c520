"""Columns of event time, as microseconds since 1970 UTC."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from engine.errors import ConfigError, FunctionError, GraphError

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Units that an integer column of event time may have, in µs; nanoseconds are divided."""

_DAY = 86_400_000_000
_LAST = 2**63 - 1


def check_event_time(schema: Mapping[str, pl.DataType], column: str, subject: str) -> None:
    """Refuse a column that is not there, or cannot be event time. Raises GraphError."""
    if column not in schema:
        msg = (
            f"watermarks of {subject} name an unknown column: got {column!r}; it has "
            f"{', '.join(schema)}"
        )
        raise GraphError(msg)
    if not _is_time(schema[column]):
        msg = f"watermarks of {subject}: {_no_time(column, schema[column])}"
        raise GraphError(msg)


def event_times(frame: pl.DataFrame, column: str, unit: str = "us") -> pl.Series:
    """Return a column as µs since 1970 UTC; a time without zone counts as UTC.

    Raises FunctionError for a null, and for an integer too large for its unit.
    """
    series = frame.get_column(column)
    if series.null_count():
        at = int(series.is_null().arg_max() or 0)
        msg = (
            f"event time column {column!r} is null: row {short(frame, at)}; fill or drop such "
            "rows in the source"
        )
        raise FunctionError(msg)
    match series.dtype:
        case pl.Datetime(time_unit="us"):
            return series.cast(pl.Int64)
        case pl.Datetime():
            return series.dt.cast_time_unit("us").cast(pl.Int64)
        case pl.Date():
            return series.cast(pl.Int64) * _DAY
        case dtype if dtype.is_integer():
            return _whole(frame, series, unit)
        case dtype:
            raise ConfigError(_no_time(column, dtype))


def _whole(frame: pl.DataFrame, series: pl.Series, unit: str) -> pl.Series:
    factor = UNITS.get(unit, 1)
    if factor > 1 or series.dtype == pl.UInt64:
        largest = _LAST // factor
        least = -largest if series.dtype.is_signed_integer() else 0
        wrong = ~series.is_between(least, largest)
        if wrong.any():
            at = int(wrong.arg_max() or 0)
            msg = (
                f"event time column {series.name!r} is out of range: got {series[at]} {unit}: row "
                f"{short(frame, at)}; pass the unit that it has: s, ms, us or ns"
            )
            raise FunctionError(msg)
    whole = series.cast(pl.Int64)
    return whole // 1_000 if unit == "ns" else whole * factor if factor > 1 else whole


def _is_time(dtype: pl.DataType) -> bool:
    return dtype.is_integer() or isinstance(dtype, pl.Datetime | pl.Date)


def _no_time(column: str, dtype: pl.DataType) -> str:
    return (
        f"event time column {column!r} is not a time: it has type {dtype}; use Datetime, Date or "
        "an integer with a unit"
    )


def short(frame: pl.DataFrame, row: int) -> str:
    """A row as text, shortened for a message."""
    text = str(frame.row(row, named=True))
    return text if len(text) <= 200 else text[:200] + "…"
