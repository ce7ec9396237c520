"""Rows in and out of user functions: dicts on their side, frames on ours.

Shapes   a row that a function gives has columns of the promised schema; one that is left out is
         null. `event_time` and the row watermark are those of the row that it was made from.
Errors   FunctionError names the function, its row and what it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import polars as pl

from engine.elements import EVENT_TIME, ROW_WATERMARK
from engine.errors import FunctionError, UserError
from engine.operators.expressions import HIDDEN_COLUMNS, raised, shortened

Row = dict[str, Any]


def rows_of(frame: pl.DataFrame) -> list[Row]:
    """The rows as authors see them."""
    return frame.drop(*(name for name in HIDDEN_COLUMNS if name in frame.columns)).to_dicts()


class RowsOut:
    """Collects what a function gives for the rows of one batch."""

    def __init__(self, step: str, schema: Mapping[str, pl.DataType]) -> None:
        self._step = step
        self._schema = schema
        self._known = {*schema, EVENT_TIME}
        self._rows: list[Row] = []
        self._origins: list[int] = []
        self.row: Row = {}
        """The row that the function is working on, for messages."""

    @property
    def height(self) -> int:
        """How many rows were given so far."""
        return len(self._rows)

    def add(self, given: object, origin: int) -> None:
        """Take a row made from the `origin`-th row of the batch. Raises FunctionError."""
        # The type by hand: asking an abstract class is slow, and this is done per row.
        if type(given) is not dict and not isinstance(given, Mapping):
            raise FunctionError(self._fault(f"gave {shortened(given)}", "give rows as dicts"))
        if not given.keys() <= self._known:
            unknown = [name for name in given if name not in self._known]
            names = ", ".join(map(str, unknown))
            columns = ", ".join(self._schema)
            raise FunctionError(
                self._fault(f"gave unknown columns {names}, promised {columns}", "pass schema={…}")
            )
        self._rows.append(dict(given))
        self._origins.append(origin)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what a function raises into a FunctionError that shows its row."""
        try:
            yield
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            raise FunctionError(
                self._fault(raised(error), "fix the function or filter such rows")
            ) from error

    def frame(self, source: pl.DataFrame) -> pl.DataFrame:
        """All rows, with the reserved columns of the batch they were made from."""
        columns = [
            self._column(name, dtype) for name, dtype in self._schema.items() if name != EVENT_TIME
        ]
        if EVENT_TIME in self._schema:
            columns.append(self._event_times(source))
        if ROW_WATERMARK in source.columns:
            columns.append(source.get_column(ROW_WATERMARK).gather(self._origins))
        return pl.DataFrame(columns)

    def _column(self, name: str, dtype: pl.DataType) -> pl.Series:
        values = [row.get(name) for row in self._rows]
        try:
            return pl.Series(name, values, dtype=dtype)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            msg = (
                f"{self._step} gave values of column {name!r} that are not {dtype}: "
                f"{str(error).partition(chr(10))[0]}; convert them, or pass schema={{…}}"
            )
            raise FunctionError(msg) from error

    def _event_times(self, source: pl.DataFrame) -> pl.Series:
        given = [row.get(EVENT_TIME) for row in self._rows]
        if EVENT_TIME not in source.columns:
            return self._own_event_times(given)
        times = source.get_column(EVENT_TIME).gather(self._origins)
        if given == times.to_list():
            return times
        for row, own, time in zip(self._rows, given, times, strict=True):
            if own is not None and own != time:
                self.row = row
                msg = self._fault(f"changed event_time from {time} to {own}", "leave it as it is")
                raise FunctionError(msg)
        return times

    def _own_event_times(self, given: Sequence[object]) -> pl.Series:
        for row, own in zip(self._rows, given, strict=True):
            if own is None:
                self.row = row
                what = "gave a row without event_time for a row that has none"
                raise FunctionError(self._fault(what, "set event_time, in µs"))
        return self._column(EVENT_TIME, pl.Int64())

    def _fault(self, what: str, remedy: str) -> str:
        return f"{self._step} {what}: row {shortened(self.row)}; {remedy}"
