"""Lookup join: rows meet a table that is read again from time to time.

    open, and each time the clock passes a multiple of `every`: read ──▶ table, kept in the state
    rows ──join on columns──▶ rows with the table's columns

Exempt   what a row meets depends on when it comes: the table goes by processing time. A restored
         job goes on with the table of its snapshot, of subtask 0, until the next reading is due. A
         temporal join with a stream of versions gives the same output at any speed.
Shapes   out  (columns of the rows, columns of the table but for those joined on), event time as is
Order    rows keep their order; a row that meets several of the table gives as many.
Errors   FunctionError when a function fails or gives other columns, SourceError for a file.
Cost     a reading holds up the subtask; the table is in memory, and whole in every snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, cast

import polars as pl

from engine.durations import format_duration
from engine.elements import EVENT_TIME, KEY_GROUP, Micros
from engine.errors import FunctionError, HeadwaterError
from engine.operators.contract import Context, Operator
from engine.operators.expressions import HIDDEN_COLUMNS, Schema, raised
from engine.state.contract import VALUE, StateDescriptor, StateKind
from engine.state.handles import HeldHandle, Key, ValueHandle

_ONLY: Key = (0,)
"""The key of what is the same on all subtasks."""


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A table, and how to read it."""

    label: str
    read: Callable[[], pl.DataFrame]
    """Called on the subtask's thread. What it raises fails the job."""
    schema: Schema
    names: Mapping[str, str] = field(default_factory=dict)
    """What its columns are called in the result, those joined on as in the rows."""

    def frame(self) -> pl.DataFrame:
        """Read it now. Raises FunctionError, SourceError."""
        try:
            frame = self.read()
            found = {name: frame.schema.get(name) for name in self.schema}
        except HeadwaterError:
            raise
        except (Exception, SystemExit) as error:
            msg = f"table {self.label} {raised(error)}; fix the function"
            raise FunctionError(msg) from error
        if found != dict(self.schema):
            msg = (
                f"table {self.label} has other columns than when the job was built: got "
                f"{dict(frame.schema)}, expected {dict(self.schema)}; give it these columns again"
            )
            raise FunctionError(msg)
        return frame.select(list(self.schema))


class LookupJoin(Operator):
    """Joins rows with a table as it was when it was last read."""

    name: ClassVar[str] = "lookup_join"

    def __init__(
        self,
        table: LookupTable,
        on: Sequence[str],
        every: Micros,
        schema: Schema,
        *,
        outer: bool = False,
    ) -> None:
        """`on`: columns of the rows. `schema`: those of the result, in order. `outer`: keep rows
        that meet nothing, with nulls.
        """
        self.schema = dict(schema)
        self.table = table
        self.on = list(on)
        self.every = every
        self.outer = outer
        self._rows = StateDescriptor(
            "table", StateKind.HELD, {}, {EVENT_TIME: pl.Int64(), **table.schema}
        )
        self._read_at = StateDescriptor("read", StateKind.VALUE, {}, {VALUE: pl.Int64()})

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """The table, and when it was read."""
        return (self._rows, self._read_at)

    def open(self, ctx: Context) -> None:
        """Take the table of the snapshot, or read it."""
        if self._time(ctx).get_many([_ONLY]):
            frames = self._held(ctx).frames()
            empty = pl.DataFrame(schema=dict(self.table.schema))
            self._take(pl.concat([empty, *(frame.select(empty.columns) for frame in frames)]))
        else:
            self._read(ctx)
        self._wake(ctx)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Join the rows with the table."""
        how: Literal["left", "inner"] = "left" if self.outer else "inner"
        joined = frame.join(self._table, on=self.on, how=how, maintain_order="left_right")
        hidden = [name for name in HIDDEN_COLUMNS if name in joined.columns]
        ctx.emit(joined.select(*self.schema, *hidden))

    def on_processing_time(self, now: Micros, ctx: Context) -> None:
        """Read the table again."""
        self._read(ctx)
        self._wake(ctx)

    def _read(self, ctx: Context) -> None:
        table = self.table.frame()
        stamps = pl.lit(0, pl.UInt16).alias(KEY_GROUP), pl.lit(ctx.now, pl.Int64).alias(EVENT_TIME)
        self._held(ctx).hold([table.with_columns(stamps)])
        self._time(ctx).put_many({_ONLY: ctx.now})
        self._take(table)

    def _take(self, table: pl.DataFrame) -> None:
        self._table = table.rename(dict(self.table.names))

    def _wake(self, ctx: Context) -> None:
        """Ask for the next multiple of `every`, at which all subtasks read."""
        ctx.wake(Micros((ctx.now // self.every + 1) * self.every))

    def _held(self, ctx: Context) -> HeldHandle:
        return cast("HeldHandle", ctx.state(self._rows))

    def _time(self, ctx: Context) -> ValueHandle:
        return cast("ValueHandle", ctx.state(self._read_at))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {
            "table": self.table.label,
            "on": ", ".join(self.on),
            "every": format_duration(self.every),
            "how": "left" if self.outer else "inner",
        }
