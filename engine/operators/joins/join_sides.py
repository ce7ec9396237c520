"""The two sides of a join: their columns, the states that keep their rows, and what comes out.

    left   key columns, other columns ──┐
                                        ├──▶ left columns, right columns but for keys, event_time
    right  key columns, other columns ──┘    (a right column may get another name)

Shapes   key columns go by their place: `user` of the left may meet `id` of the right. Results have
         the names of the left.
Late     a row is behind when it came after its own split's watermark, or after the operator's,
         which differs only after an input was idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, ROW_WATERMARK, Micros
from engine.operators.contract import Context
from engine.operators.expressions import Schema, user_columns
from engine.operators.windows.partial_aggregate import LATE, LATE_ROWS
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import RowsHandle

LATE_TAGS = (LATE, "late_right")
"""Side outputs of rows that came too late, per side."""


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join."""

    keys: tuple[str, ...]
    schema: Schema
    """All of its columns, event time included."""
    names: Mapping[str, str]
    """What its columns that are no keys are called in the result."""

    @property
    def columns(self) -> list[str]:
        """The columns that are neither keys nor reserved."""
        return [name for name in user_columns(self.schema) if name not in self.keys]

    def state(self, name: str, kind: StateKind, also: Schema | None = None) -> StateDescriptor:
        """A state of its rows, with some columns more."""
        keys = {key: self.schema[key] for key in self.keys}
        values = {column: self.schema[column] for column in self.columns}
        return StateDescriptor(name, kind, keys, {EVENT_TIME: pl.Int64(), **values, **(also or {})})


def joined_schema(left: Side, right: Side, also: Schema | None = None) -> dict[str, pl.DataType]:
    """Columns and types of the results. `also`: columns before the event time."""
    mine = {name: left.schema[name] for name in user_columns(left.schema)}
    theirs = {right.names[name]: right.schema[name] for name in right.columns}
    return {**mine, **theirs, **(also or {}), EVENT_TIME: pl.Int64()}


def behind(frame: pl.DataFrame, watermark: Micros) -> pl.Series | None:
    """Which rows are behind their watermark; None when all are in time."""
    late = None
    if ROW_WATERMARK in frame.columns:
        late = frame.get_column(ROW_WATERMARK).is_not_null()
    times = frame.get_column(EVENT_TIME)
    if int(times.to_numpy().min()) < watermark:
        late = times < watermark if late is None else late | (times < watermark)
    return late if late is not None and late.any() else None


def set_aside(frame: pl.DataFrame, late: pl.Series | None, port: int, ctx: Context) -> pl.DataFrame:
    """Send late rows to the side output of their side; give the others."""
    if late is None:
        return frame
    rows = frame.filter(late)
    ctx.emit(rows.drop(KEY_GROUP), LATE_TAGS[port])
    ctx.count(LATE_ROWS, rows.height)
    return frame.filter(~late)


def as_one(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All rows in one piece of memory; there is at least one frame."""
    return frames[0] if len(frames) == 1 else pl.concat(frames, rechunk=True)


def in_steps(waiting: Sequence[RowsHandle], time: Micros) -> Iterator[Micros]:
    """The times up to `time` before which all waiting rows fit into memory."""
    while True:
        until = min(rows.reach(time) for rows in waiting)
        yield until
        if until == time:
            return
