"""Rows that wait for event time, in memory: frames by reference, cut where event time has come to.

    append ──▶ [frame, frame, …] ──take──▶ rows with event_time < time, frame by frame
                                 └─take_before──▶ the same, in order

Cost     a frame that lies before the time leaves as it is, one behind it is not looked at. One that
         lies across is filtered; if that happens again it is sorted, and from then on only sliced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, Micros
from engine.state.contract import FrozenState, StateDescriptor
from engine.state.handles import RowsHandle
from engine.state.schema import table_schema


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that came together."""

    rows: pl.DataFrame
    first: int
    last: int
    cut: bool = False
    """Whether some of them have gone."""

    def before(self, time: int) -> tuple[pl.DataFrame, _Piece]:
        """Cut off the rows before a time that lies within."""
        rows = self.rows.sort(EVENT_TIME, maintain_order=True) if self.cut else self.rows
        times = rows.get_column(EVENT_TIME)
        if times.is_sorted():
            at = int(times.to_numpy().searchsorted(time))
            return rows.slice(0, at), _piece(rows.slice(at), cut=True)
        ripe = times < time
        return _filtered(rows, ripe), _piece(_filtered(rows, ~ripe), cut=True)


def _piece(rows: pl.DataFrame, *, cut: bool = False) -> _Piece:
    times = rows.get_column(EVENT_TIME).to_numpy()
    return _Piece(rows, int(times.min()), int(times.max()), cut)


def _filtered(rows: pl.DataFrame, mask: pl.Series) -> pl.DataFrame:
    return pl.DataFrame([column.filter(mask) for column in rows.get_columns()])


def with_columns(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of a frame: without a query, which costs more than a small frame does."""
    return pl.DataFrame([rows.get_column(name) for name in columns])


class MemoryRows(RowsHandle):
    """The waiting rows of one subtask, in the order of their arrival."""

    def __init__(self, descriptor: StateDescriptor) -> None:
        self._descriptor = descriptor
        self._columns = list(table_schema(descriptor))
        self._pieces: list[_Piece] = []

    def append(self, rows: pl.DataFrame) -> None:
        """Add rows."""
        if not rows.is_empty():
            self._pieces.append(_piece(with_columns(rows, self._columns)))

    def take(self, time: Micros) -> Sequence[pl.DataFrame]:
        """Remove the rows with event_time < time."""
        taken: list[pl.DataFrame] = []
        left: list[_Piece] = []
        for piece in self._pieces:
            if piece.last < time:
                taken.append(piece.rows)
            elif piece.first >= time:
                left.append(piece)
            else:
                rows, rest = piece.before(time)
                taken.append(rows)
                left.append(rest)
        self._pieces = left
        return taken

    def take_before(self, time: Micros) -> pl.DataFrame | None:
        """Remove the rows with event_time < time, sorted."""
        taken = self.take(time)
        if not taken:
            return None
        keys = [KEY_GROUP, *self._descriptor.keys]
        return pl.concat(taken).sort(EVENT_TIME, *keys, maintain_order=True)

    def freeze(self) -> FrozenState:
        """References to all frames."""
        return FrozenRows(self._descriptor, tuple(piece.rows for piece in self._pieces))


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
