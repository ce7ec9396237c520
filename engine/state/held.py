"""Rows that an operator holds, in memory: frames by reference, replaced as a whole.

    hold([frame, frame]) ──▶ frames() ──▶ the same frames

Shapes   as rows that wait: (key_group, keys…, event_time, values…). What is in which frame, and in
         which order, is up to the operator; snapshots sort it.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from engine.state.contract import FrozenState, StateDescriptor
from engine.state.handles import HeldHandle
from engine.state.schema import table_schema
from engine.state.waiting import FrozenRows, with_columns


class MemoryHeld(HeldHandle):
    """The held rows of one subtask."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        self.descriptor = descriptor
        self._columns = list(table_schema(descriptor))
        self._frames: tuple[pl.DataFrame, ...] = ()

    def frames(self) -> Sequence[pl.DataFrame]:
        """The rows, as they were given."""
        return self._frames

    def hold(self, frames: Sequence[pl.DataFrame]) -> None:
        """Hold these rows from now on."""
        self._frames = tuple(
            with_columns(frame, self._columns) for frame in frames if not frame.is_empty()
        )

    def append(self, rows: pl.DataFrame) -> None:
        """Hold some rows more."""
        self.hold([*self._frames, rows])

    def freeze(self) -> FrozenState:
        """References to all frames."""
        frames = self._frames
        return FrozenRows(self.descriptor, lambda: frames)
