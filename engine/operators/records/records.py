"""Record operators: user functions of one row at a time, without state.

Cost     a Python call per row: about a million rows a second at best. Expressions are ten times
         faster; these are for what expressions cannot say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import polars as pl

from engine.functions.row_class import RowClass
from engine.operators.contract import Context, Operator
from engine.operators.records.rows import check_nulls, columns_of, row_at, rows_of
from engine.operators.records.rows_out import RowsOut

RowFunction = Callable[[Any], Any]


class _RecordOperator(Operator):
    """Calls a function once per row."""

    def __init__(
        self,
        function: RowFunction,
        label: str,
        schema: Mapping[str, pl.DataType],
        *,
        takes: RowClass | None = None,
        gives: RowClass | None = None,
    ) -> None:
        """`takes`, `gives`: the classes of the rows; None for dicts."""
        self.function = function
        self.label = label
        self.schema = dict(schema)
        self.takes = takes
        self.gives = gives

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        out = self._out(frame)
        with out.explained():
            self._call(self._rows(frame), out)
        ctx.emit(out.frame(frame))

    def _call(self, rows: Iterable[Any], out: RowsOut) -> None:
        """Call the function once per row: that is what the author asked for."""
        raise NotImplementedError

    def _rows(self, frame: pl.DataFrame) -> Iterator[Any]:
        check_nulls(frame, self.takes, self._step)
        return rows_of(columns_of(frame), self.takes)

    def _out(self, frame: pl.DataFrame) -> RowsOut:
        return RowsOut(self._step, self.schema, partial(row_at, frame), self.gives)

    @property
    def _step(self) -> str:
        return f"{self.name} {self.label!r}"

    def describe(self) -> Mapping[str, str]:
        return {"function": self.label}


class MapRows(_RecordOperator):
    """One row for each row."""

    name: ClassVar[str] = "map"

    def _call(self, rows: Iterable[Any], out: RowsOut) -> None:
        out.collect((self.function(row),) for row in rows)


class FlatMapRows(_RecordOperator):
    """Any number of rows for each row."""

    name: ClassVar[str] = "flat_map"

    def _call(self, rows: Iterable[Any], out: RowsOut) -> None:
        out.collect(map(self.function, rows))


class FilterRows(_RecordOperator):
    """The rows for which the function is true."""

    name: ClassVar[str] = "filter"

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Call the function once per row."""
        out, kept = self._out(frame), []
        with out.explained():
            for out.origin, row in enumerate(self._rows(frame)):
                kept.append(bool(self.function(row)))
        ctx.emit(frame.filter(pl.Series(kept, dtype=pl.Boolean)))
