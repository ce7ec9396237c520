"""Rows out of user functions: what they give is taken apart at once, and becomes columns.

    {"sensor": …, "value": …} ──▶ one flat list of values, row after row ──▶ columns of a frame

Shapes   a row that a function gives has columns of the promised schema; one that is left out is
         null. `event_time` and the row watermark are those of the row that it was made from.
Errors   FunctionError names the function, its row and what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from operator import attrgetter, itemgetter
from typing import Any, cast

import polars as pl

from engine.elements import EVENT_TIME, ROW_WATERMARK
from engine.errors import FunctionError, UserError
from engine.functions.row_class import RowClass
from engine.operators.expressions import raised, shortened
from engine.state.values import UNFIT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_ROW = ": row"

_Values = Callable[[Any], tuple[Any, ...]]


class RowsOut:
    """Collects what a function gives for the rows of one batch."""

    def __init__(
        self,
        step: str,
        schema: Mapping[str, pl.DataType],
        cause: Callable[[int], object],
        made: RowClass | None = None,
    ) -> None:
        """`cause`: tells what the function was called with at an origin, for messages. `made`: the
        class that rows are of; None for dicts.
        """
        self._step = step
        self._schema = schema
        self._made = made
        # Event time goes last, so that a row that leaves it out is only shorter.
        self._own = [name for name in schema if name != EVENT_TIME]
        self._names = [*self._own, EVENT_TIME] if EVENT_TIME in schema else self._own
        if made is not None:
            self._names = list(made.columns)
        self._width = len(self._names)
        self._kind = dict if made is None else made.made
        self._values = _values_of(self._names, made)
        self._own_values = _values_of(self._own, made)
        self._flat: list[Any] = []
        self._origins: list[int] = []
        self._cause = cause
        self.origin = 0
        """Which row the function is working on, for messages."""

    @property
    def height(self) -> int:
        """How many rows were given so far."""
        return len(self._origins)

    def collect(self, outcomes: Iterable[Iterable[Any] | None]) -> None:
        """Take what the function gives for each row of the batch. Raises FunctionError.

        The function may run when `outcomes` is asked for the next, or while that is gone through.
        """
        flat, origins, values, width = self._flat, self._origins, self._values, self._width
        kind, has_length = self._kind, self._made is None
        for origin, given in enumerate(outcomes):
            for row in () if given is None else given:
                # The type by hand: asking an abstract class is slow, and this is done per row.
                if type(row) is kind and (not has_length or len(row) == width):
                    try:
                        # Read at once: the function may change the row afterwards.
                        flat += values(row)
                    except KeyError:
                        flat += self._odd(row)
                else:
                    flat += self._odd(row)
                origins.append(origin)
            self.origin = origin + 1

    def add(self, row: Any) -> None:
        """Take one row, made from the row that the function is working on."""
        self._flat += self._odd(row)
        self._origins.append(self.origin)

    def _odd(self, row: Any) -> Iterable[Any]:
        """The values of a row that may have other columns than the promised ones."""
        if self._made is not None:
            return self._fields(row, self._made)
        if type(row) is dict and len(row) == len(self._own) and EVENT_TIME not in row:
            with suppress(KeyError):
                return (*self._own_values(row), None)
        if not isinstance(row, Mapping):
            what = f"gave {shortened(row)}"
            raise self._fault(what, "give rows as dicts, by yield or in a list")
        unknown = [name for name in row if name not in self._names and name != EVENT_TIME]
        if unknown:
            names, columns = ", ".join(map(str, unknown)), ", ".join(self._schema)
            what = f"gave unknown columns {names}, promised {columns}"
            raise self._fault(what, "correct the function, or pass schema={…}")
        return map(row.get, self._names)

    def _fields(self, row: Any, made: RowClass) -> Iterable[Any]:
        if not isinstance(row, made.made):
            what = f"gave {shortened(row)}"
            raise self._fault(what, f"give rows as {made.name}, by yield or in a list")
        return self._values(row)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what a function raises into a FunctionError that shows its row."""
        try:
            yield
        except FunctionError as error:
            if _ROW in str(error):
                raise
            raise self._completed(error) from error.__cause__ or error
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise self._fault(raised(error), "fix the function or filter such rows") from error

    def frame(self, source: pl.DataFrame) -> pl.DataFrame:
        """All rows, with the reserved columns of the batch they were made from."""
        columns = [self._column(name) for name in self._schema if name != EVENT_TIME]
        one_for_one = self._origins == list(range(source.height))
        if EVENT_TIME in self._schema:
            columns.append(self._event_times(source, one_for_one=one_for_one))
        if ROW_WATERMARK in source.columns:
            columns.append(self._gathered(source, ROW_WATERMARK, one_for_one=one_for_one))
        return pl.DataFrame(columns)

    def _gathered(self, source: pl.DataFrame, name: str, *, one_for_one: bool) -> pl.Series:
        column = source.get_column(name)
        return column if one_for_one else column[pl.Series(self._origins, dtype=pl.UInt32)]

    def _given(self, name: str) -> list[Any]:
        if name not in self._names:
            return [None] * self.height
        return self._flat[self._names.index(name) :: self._width]

    def _column(self, name: str) -> pl.Series:
        values, dtype = self._given(name), self._schema[name]
        try:
            column = column_of(name, values, dtype)
        except UNFIT as error:
            self.origin, value = self._first_misfit(name, values, dtype)
            what = f"gave values of column {name!r} that are not {dtype}, the first {value}"
            raise self._fault(what, "convert them, or pass schema={…}") from error
        if self._made is not None and name in self._made.required and column.null_count():
            self.origin = self._origins[values.index(None)]
            what = f"gave None for {name!r} of {self._made.name}, which cannot be None"
            raise self._fault(what, "give a value, or declare it Optional")
        return column

    def _first_misfit(self, name: str, values: list[Any], dtype: pl.DataType) -> tuple[int, str]:
        for origin, value in zip(self._origins, values, strict=True):
            try:
                column_of(name, [value], dtype)
            except UNFIT:
                return origin, shortened(value)
        return self.origin, shortened(values)

    def _event_times(self, source: pl.DataFrame, *, one_for_one: bool) -> pl.Series:
        given = self._given(EVENT_TIME)
        if EVENT_TIME not in source.columns:
            return self._own_event_times(given)
        times = self._gathered(source, EVENT_TIME, one_for_one=one_for_one)
        if given == times.to_list():
            return times
        for number, (own, time) in enumerate(zip(given, times, strict=True)):
            if own is not None and own != time:
                self.origin = self._origins[number]
                what = f"changed event_time from {time} to {own}"
                raise self._fault(what, "leave it as it is")
        return times

    def _own_event_times(self, given: Sequence[object]) -> pl.Series:
        if None in given:
            self.origin = self._origins[given.index(None)]
            what = "gave a row without event_time for a row that has none"
            raise self._fault(what, "set event_time, in µs")
        return self._column(EVENT_TIME)

    def _fault(self, what: str, remedy: str) -> FunctionError:
        row = shortened(self._cause(self.origin))
        return FunctionError(f"{self._step} {what}{_ROW} {row}; {remedy}")

    def _completed(self, error: FunctionError) -> FunctionError:
        """What a state or a timer had to say, which knows neither operator nor row."""
        row = shortened(self._cause(self.origin))
        where = "" if self._step in str(error) else f" of {self._step}"
        return FunctionError(f"{error}, at the row {row}{where}")


def column_of(name: str, values: list[Any], dtype: pl.DataType) -> pl.Series:
    """A column of Python values. Raises what the library raises for values of another type."""
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None and dtype.time_unit == "us":
        try:
            # Four times as fast as the library.
            micros = [(moment - _EPOCH) // _MICROSECOND for moment in values]
        except TypeError:  # some are null, or times without a zone
            pass
        else:
            return pl.Series(name, micros, dtype=pl.Int64).cast(dtype)
    return pl.Series(name, values, dtype=dtype)


def _values_of(names: Sequence[str], made: RowClass | None) -> _Values:
    """A function from a row to the values of these columns."""
    if made is None:
        if len(names) > 1:
            return cast("_Values", itemgetter(*names))
        return lambda row: tuple(row[name] for name in names)
    if len(names) > 1:
        return cast("_Values", attrgetter(*names))
    return lambda row: tuple(getattr(row, name) for name in names)
