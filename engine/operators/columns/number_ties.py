"""Number ties: a number that tells rows of one key and one event time apart.

    key  event_time  value            number
    a    7           2.5     ──▶      null      the first of its time; so most rows have none
    a    7           3.0              1
    a    7           3.0              2         equal rows: it cannot be seen which is which
    b    7           3.0              null

A row's number is its place among all rows of its key and time, in order of their values, column by
column from left to right. So it depends on what the rows are, and not on how they came: rows wait
until event time has passed them, when no other can come.

Shapes   out  (columns of the input, event_time, number: int64 or null)
Order    rows leave in order of event time; those of one time by their values, see `event_order.py`.
Guarantee  any batches, splits, parallelism, speed and restores: the same numbers. A row that is
           late for that has none, and goes to the side output "late".
Cost     rows wait by reference, and are sorted once; where no two have one time, that is all.
Source   SQL:2003, ROW_NUMBER() OVER (PARTITION BY key, time ORDER BY every column) - 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import polars as pl

from engine.elements import EVENT_TIME, Micros
from engine.operators.contract import Context, Operator
from engine.operators.expressions import Schema, user_columns
from engine.operators.late import behind, set_aside
from engine.operators.records.event_order import in_total_order
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import RowsHandle


class NumberTies(Operator):
    """Adds a column with the number of each row among those of its key and time."""

    name: ClassVar[str] = "number_ties"

    def __init__(self, schema: Schema, keys: Sequence[str], column: str) -> None:
        """`schema`: all columns of the input. `column`: what the number is called."""
        self.keys = tuple(keys)
        self.column = column
        self.schema = {**schema, column: pl.Int64()}
        self._columns = user_columns(schema)
        values = {name: schema[name] for name in self._columns if name not in self.keys}
        self._waiting = StateDescriptor(
            "rows",
            StateKind.ROWS,
            {key: schema[key] for key in self.keys},
            {EVENT_TIME: pl.Int64(), **values},
            dict.fromkeys(values),
        )

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """The rows that wait."""
        return (self._waiting,)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Let rows wait, but for those that are late."""
        self._rows(ctx).append(set_aside(frame, behind(frame, ctx.watermark), port, ctx))

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Number the rows that event time has passed, in steps that fit into memory."""
        rows, until = self._rows(ctx), None
        while until != time:
            until = rows.reach(time)
            ripe = rows.take_before(until)
            if ripe is not None:
                ctx.emit(self._numbered(ripe))

    def _numbered(self, rows: pl.DataFrame) -> pl.DataFrame:
        place = pl.int_range(pl.len(), dtype=pl.Int64).over(EVENT_TIME, *self.keys)
        number = pl.when(place > 0).then(place).alias(self.column)
        return in_total_order(rows).select(*self._columns, EVENT_TIME, number)

    def _rows(self, ctx: Context) -> RowsHandle:
        return cast("RowsHandle", ctx.state(self._waiting))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keys": ", ".join(self.keys), "column": self.column}
