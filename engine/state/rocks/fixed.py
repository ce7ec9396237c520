"""Numbers, truth and times as bytes of a fixed width: single values, and whole columns.

    Python object ◀──object_of, number_of──▶ number ◀──column_of, numbers_of──▶ column

Units    times and durations are µs, dates days, since 1970; times of day ns since midnight: all
         that a Python object of the type can tell.
Shapes   what is no number, as text is, has none of these: its `code_of` is None.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import polars as pl
from pyarrow import lib as arrow

from engine.errors import InternalError

Numbers = npt.NDArray[Any]

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  of times without a zone
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY_ZERO = date(1970, 1, 1).toordinal()

_CODES: dict[pl.DataType, str] = {
    pl.Int8(): "b",
    pl.Int16(): "h",
    pl.Int32(): "i",
    pl.Int64(): "q",
    pl.UInt8(): "B",
    pl.UInt16(): "H",
    pl.UInt32(): "I",
    pl.UInt64(): "Q",
    pl.Float32(): "f",
    pl.Float64(): "d",
    pl.Boolean(): "?",
}


def code_of(dtype: pl.DataType) -> str | None:
    """The bytes of a number, as both `struct` and NumPy name them.

    >>> code_of(pl.Int16()), code_of(pl.Date()), code_of(pl.String())
    ('h', 'q', None)
    """
    return "q" if dtype.is_temporal() else _CODES.get(dtype)


def number_of(dtype: pl.DataType) -> Callable[[Any], Any]:
    """From a Python object of a type to its number."""
    match dtype:
        case pl.Datetime():
            epoch = _EPOCH if dtype.time_zone is None else _EPOCH_UTC
            return lambda value: (value - epoch) // _MICROSECOND
        case pl.Duration():
            return lambda value: value // _MICROSECOND
        case pl.Date():
            return lambda value: value.toordinal() - _DAY_ZERO
        case pl.Time():
            return _nanoseconds
    if dtype not in _CODES:
        msg = f"state cannot have {dtype} as a number of fixed width"
        raise InternalError(msg)
    return lambda value: value


def object_of(dtype: pl.DataType) -> Callable[[Any], Any]:
    """From a number to the Python object that the library would give."""
    match dtype:
        case pl.Datetime(time_zone=str(name)):
            zone = ZoneInfo(name)
            return lambda number: (_EPOCH_UTC + timedelta(microseconds=number)).astimezone(zone)
        case pl.Datetime():
            return lambda number: _EPOCH + timedelta(microseconds=number)
        case pl.Duration():
            return lambda number: timedelta(microseconds=number)
        case pl.Date():
            return lambda number: date.fromordinal(number + _DAY_ZERO)
        case pl.Time():
            return lambda number: (_EPOCH + timedelta(microseconds=number // 1_000)).time()
        case pl.Boolean():
            return bool
    return lambda number: number


def numbers_of(column: pl.Series) -> Numbers:
    """The numbers of a column; 0 for a null."""
    match column.dtype:
        case pl.Datetime() | pl.Duration():
            column = column.dt.cast_time_unit("us")
        case pl.Boolean():
            return column.fill_null(value=False).to_numpy()
    return column.to_physical().fill_null(0).to_numpy()


def column_of(numbers: Numbers, dtype: pl.DataType) -> pl.Series:
    """The column of some numbers."""
    match dtype:
        case pl.Datetime():
            micros = pl.Series(numbers).cast(pl.Datetime("us", dtype.time_zone))
            return micros.dt.cast_time_unit(dtype.time_unit)
        case pl.Duration():
            return pl.Series(numbers).cast(pl.Duration("us")).dt.cast_time_unit(dtype.time_unit)
        case pl.Date():
            return pl.Series(numbers.astype(np.int32)).cast(dtype)
        case pl.Time():
            return pl.Series(numbers).cast(dtype)
    return pl.Series(numbers).cast(dtype)


def fixed_bytes(rows: Numbers) -> pl.Series:
    """The bytes of each element of an array."""
    raw = arrow.py_buffer(np.ascontiguousarray(rows))
    column = pl.from_arrow(
        arrow.Array.from_buffers(arrow.binary(rows.dtype.itemsize), len(rows), [None, raw])
    )
    assert isinstance(column, pl.Series)
    return column


def _nanoseconds(of_day: time) -> int:
    seconds = (of_day.hour * 60 + of_day.minute) * 60 + of_day.second
    return (seconds * 1_000_000 + of_day.microsecond) * 1_000
