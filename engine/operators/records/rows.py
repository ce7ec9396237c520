"""Rows into user functions: a frame's columns, read one by one, become a dict or object per row.

    frame ──to_list──▶ one list of Python values per column ──zip──▶ {"sensor": …, "value": …}, …

Cost     a row of four columns takes 0.2 µs; the library's own way (`to_dicts`) three times that.
         A time with a zone costs as much again as the rest of such a row. Rows are made one by one:
         each is in the processor's cache when it is used, and is gone before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, cast
from zoneinfo import ZoneInfo

import polars as pl

from engine.errors import FunctionError
from engine.functions.row_class import RowClass
from engine.operators.expressions import HIDDEN_COLUMNS, shortened

Row = dict[str, Any]

_EXACT_MICROS = 2**52
"""Below this many µs from 1970, some 140 years, a float of seconds has the microsecond exactly."""


Columns = Mapping[str, Sequence[Any]]
"""The Python values of the columns that authors see."""


def columns_of(frame: pl.DataFrame) -> Columns:
    """Read a batch; each column once, as that costs as much as much else."""
    visible = (column for column in frame.get_columns() if column.name not in HIDDEN_COLUMNS)
    return {column.name: values_of(column) for column in visible}


def rows_of(columns: Columns, made: RowClass | None = None) -> Iterator[Any]:
    """The rows as authors see them, each made when it is asked for: dicts, or of their class.

    >>> list(rows_of(columns_of(pl.DataFrame({"sensor": ["door", "roof"], "value": [1.5, None]}))))
    [{'sensor': 'door', 'value': 1.5}, {'sensor': 'roof', 'value': None}]
    """
    if made is not None:
        return map(made.made, *(columns[name] for name in made.columns))
    return _dicts_of(tuple(columns))(columns.values())


def row_at(frame: pl.DataFrame, number: int) -> Row:
    """One row as authors see it, for messages."""
    return next(rows_of(columns_of(frame.slice(number, 1))))


def check_nulls(frame: pl.DataFrame, made: RowClass | None, step: str) -> None:
    """Refuse nulls in fields that cannot be None. Raises FunctionError."""
    for name in () if made is None else sorted(made.required):
        column = frame.get_column(name)
        if made is not None and column.null_count():
            row = shortened(row_at(frame, column.is_null().arg_max() or 0))
            msg = (
                f"{step} takes rows as {made.name}, whose field {name!r} cannot be None: "
                f"row {row}; declare it Optional, or filter such rows"
            )
            raise FunctionError(msg)


def values_of(column: pl.Series) -> list[Any]:
    """The Python values of a column.

    >>> values_of(pl.Series([1_500_000]).cast(pl.Datetime("us", "UTC")))
    [datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=zoneinfo.ZoneInfo(key='UTC'))]
    """
    dtype = column.dtype
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None and dtype.time_unit == "us":
        micros = column.to_physical()
        if not column.null_count() and micros.is_between(-_EXACT_MICROS, _EXACT_MICROS).all():
            # Twice as fast as the library.
            zone, moment = ZoneInfo(dtype.time_zone), datetime.fromtimestamp
            return [moment(seconds, zone) for seconds in (micros / 1e6).to_list()]
    return column.to_list()


_Dicts = Callable[[Iterable[Sequence[Any]]], Iterator[Row]]


@lru_cache(maxsize=256)
def _dicts_of(names: tuple[str, ...]) -> _Dicts:
    """A function from columns to dicts, which is compiled for these names: their keys are constants
    of a dict display, the fastest way that Python has.
    """
    values = [f"v{number}" for number in range(len(names))]
    pairs = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    source = f"lambda columns: ({{{pairs}}} for {', '.join(values)}, in zip(*columns))"
    # Nothing but quoted names of columns goes into it.
    return cast("_Dicts", eval(source))  # noqa: S307
