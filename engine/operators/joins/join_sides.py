"""The two sides of a join: their columns, the states that keep their rows, and what comes out.

    left   key columns, other columns ──┐
                                        ├──▶ left columns, right columns but for keys, event_time
    right  key columns, other columns ──┘    (a right column may get another name)

Shapes   key columns go by their place: `user` of the left may meet `id` of the right. Results have
         the names of the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.elements import EVENT_TIME, Micros
from engine.operators.expressions import Schema, user_columns
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import RowsHandle


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
