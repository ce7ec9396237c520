"""Columns of event time, as microseconds since 1970 UTC."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from engine.errors import ConfigError, FunctionError, GraphError

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Units that an integer column of event time may have, in µs; nanoseconds are divided."""

_DAY = 86_400_000_000
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Years 1 to 9999: Python has no other times, and within them no end of a window overflows."""


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

    Raises FunctionError for a null, and for a time that is not in the years 1 to 9999.
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
        case pl.Datetime(time_unit="ms"):
            return _of_times(series, 1_000)
        case pl.Datetime():
            return _of_times(series.dt.cast_time_unit("us"), 1)
        case pl.Date():
            return _of_times(series, _DAY)
        case dtype if dtype.is_integer():
            return _whole(frame, series, unit)
        case dtype:
            raise ConfigError(_no_time(column, dtype))


def _of_times(series: pl.Series, factor: int) -> pl.Series:
    whole = series.cast(pl.Int64)
    wrong = _outside(whole, factor)
    if wrong is not None:
        # As a number, and without its row: Python cannot show such a time.
        msg = (
            f"event time column {series.name!r} is out of range: got {whole[wrong] * factor} µs "
            "since 1970; use times of the years 1 to 9999"
        )
        raise FunctionError(msg)
    return whole * factor if factor > 1 else whole


def _whole(frame: pl.DataFrame, series: pl.Series, unit: str) -> pl.Series:
    factor = UNITS.get(unit, 1)
    whole = series.cast(pl.Int64, strict=False)
    if unit == "ns":
        whole = whole // 1_000
    wrong = _outside(whole, factor)
    if wrong is not None:
        msg = (
            f"event time column {series.name!r} is out of range: got {series[wrong]} {unit}: row "
            f"{short(frame, wrong)}; pass the unit that it has: s, ms, us or ns"
        )
        raise FunctionError(msg)
    return whole * factor if factor > 1 else whole


def _outside(whole: pl.Series, factor: int) -> int | None:
    """The first number that is null, or no time when multiplied; None for none."""
    least, largest = -(-_FIRST // factor), _LAST // factor
    numbers = whole.to_numpy()
    if not whole.null_count() and (
        not len(numbers) or (numbers.min() >= least and numbers.max() <= largest)
    ):
        return None
    return int((~whole.is_between(least, largest)).fill_null(value=True).arg_max() or 0)


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
