"""Rows that wait for event time, in memory: frames by reference, sorted when they leave.

    append ──▶ [frame, frame, …] ──take_before(time)──▶ rows with event_time < time, in order

Cost     what waits is what event time still allows to come out of order. It is split at each
         watermark that lets a row go, as columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, MAX_TIME, Micros
from engine.state.contract import FrozenState, StateDescriptor
from engine.state.handles import RowsHandle
from engine.state.schema import table_schema


class MemoryRows(RowsHandle):
    """The waiting rows of one subtask, in the order of their arrival."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        self._descriptor = descriptor
        self._columns = list(table_schema(descriptor))
        self._frames: list[pl.DataFrame] = []
        self._earliest: int = MAX_TIME

    def append(self, rows: pl.DataFrame) -> None:
        """Add rows."""
        if rows.is_empty():
            return
        rows = rows.select(self._columns)
        self._frames.append(rows)
        self._earliest = min(self._earliest, _earliest(rows))

    def take_before(self, time: Micros) -> pl.DataFrame | None:
        """Remove the rows with event_time < time, sorted."""
        if time <= self._earliest or not self._frames:
            return None
        rows = pl.concat(self._frames)
        ripe = rows.get_column(EVENT_TIME) < time
        left = rows.filter(~ripe)
        self._frames = [left] if left.height else []
        self._earliest = _earliest(left) if left.height else MAX_TIME
        keys = [KEY_GROUP, *self._descriptor.keys]
        return rows.filter(ripe).sort(EVENT_TIME, *keys, maintain_order=True)

    def freeze(self) -> FrozenState:
        """References to all frames."""
        return FrozenRows(self._descriptor, tuple(self._frames))


class FrozenRows(FrozenState):
    """The waiting rows of one subtask as they were at a barrier."""

    def __init__(self, descriptor: StateDescriptor, frames: Sequence[pl.DataFrame]) -> None:
        self.descriptor = descriptor
        self._frames = frames

    def table(self) -> pl.DataFrame:
        """The canonical table, sorted by key group, keys, time, and then arrival."""
        if not self._frames:
            return pl.DataFrame(schema=table_schema(self.descriptor))
        keys = [KEY_GROUP, *self.descriptor.keys]
        return pl.concat(self._frames).sort(*keys, EVENT_TIME, maintain_order=True)


def _earliest(rows: pl.DataFrame) -> int:
    return int(rows.get_column(EVENT_TIME).min())  # type: ignore[arg-type]
