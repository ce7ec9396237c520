"""Rows that wait for event time, in memory: frames by reference, cut where event time has come to.

    append ──▶ [frame, frame, …] ──take──▶ rows with event_time < time, frame by frame
                                 └─take_before──▶ the same, in order

Cost     a frame that lies before the time leaves as it is, one behind it is not looked at. One that
         lies across is sorted by index, once and roughly; its rows are moved when they leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, Micros
from engine.state.changes import LayerPolicy
from engine.state.contract import Frozen, FrozenChanges, FrozenState, Increment, StateDescriptor
from engine.state.handles import RowsHandle
from engine.state.row_changes import LogChanges, Logged
from engine.state.schema import table_schema

_FEW = 1_024
"""So many rows are moved into order sooner than looked up in it."""

_PLACE_BITS = 16
"""NumPy sorts integers of this size ten times as fast as times."""

_Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that came together, or those of them that are still there."""

    rows: pl.DataFrame
    first: int
    last: int

    def cut(self, time: int) -> tuple[pl.DataFrame, _Piece]:
        """The rows before a time that lies within, and the others."""
        times = self.rows.get_column(EVENT_TIME)
        if times.is_sorted():
            at = int(times.to_numpy().searchsorted(time))
            return self.rows.slice(0, at), _piece(self.rows.slice(at))
        if len(times) <= _FEW:
            return _piece(self.rows.sort(EVENT_TIME, maintain_order=True)).cut(time)
        return _dealt(self).cut(time)

    def left(self) -> pl.DataFrame:
        """The rows that are still there."""
        return self.rows

    @property
    def height(self) -> int:
        """How many are still there."""
        return self.rows.height


@dataclass(frozen=True, slots=True)
class _Dealt(_Piece):
    """Rows with their order, by places of some microseconds each."""

    shift: int
    order: _Places
    places: npt.NDArray[np.uint16]
    """Of the rows in order."""
    at: int = 0
    """How far in the order rows have gone."""
    behind: _Places = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """Rows that stayed, of the last place that was reached."""

    def cut(self, time: int) -> tuple[pl.DataFrame, _Piece]:
        """The rows before a time that lies within, and the others."""
        place = np.uint16((time - self.first) >> self.shift)
        begin = max(self.at, int(self.places.searchsorted(place)))
        end = max(begin, int(self.places.searchsorted(place, side="right")))
        near = np.concatenate([self.behind, self.order[begin:end]])
        ripe = self.rows.get_column(EVENT_TIME).to_numpy()[near] < time
        taken = np.concatenate([near[ripe], self.order[self.at : begin]])
        return self.rows[taken], replace(self, at=end, behind=near[~ripe])

    def left(self) -> pl.DataFrame:
        """The rows that are still there."""
        return self.rows[np.concatenate([self.behind, self.order[self.at :]])]

    @property
    def height(self) -> int:
        """How many are still there."""
        return len(self.behind) + len(self.order) - self.at


def _piece(rows: pl.DataFrame) -> _Piece:
    times = rows.get_column(EVENT_TIME).to_numpy()
    return _Piece(rows, int(times.min()), int(times.max()))


def _dealt(piece: _Piece) -> _Dealt:
    shift = max(0, (piece.last - piece.first).bit_length() - _PLACE_BITS)
    times = piece.rows.get_column(EVENT_TIME).to_numpy()
    places = ((times - piece.first) >> shift).astype(np.uint16)
    order = np.argsort(places, kind="stable")
    return _Dealt(piece.rows, piece.first, piece.last, shift, order, places[order])


def with_columns(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of a frame: without a query, which costs more than a small frame does."""
    return pl.DataFrame([rows.get_column(name) for name in columns])


class MemoryRows(RowsHandle):
    """The waiting rows of one subtask, in the order of their arrival."""

    def __init__(self, descriptor: StateDescriptor, policy: LayerPolicy | None = None) -> None:
        self._descriptor = descriptor
        self._changes = LogChanges(policy or LayerPolicy())
        self._columns = list(table_schema(descriptor))
        self._pieces: list[_Piece] = []

    def append(self, rows: pl.DataFrame) -> None:
        """Add rows."""
        if not rows.is_empty():
            piece = _piece(with_columns(rows, self._columns))
            self._pieces.append(piece)
            self._changes.note(piece.rows, piece.last)

    def take(self, time: Micros) -> Sequence[pl.DataFrame]:
        """Remove the rows with event_time < time."""
        taken: list[pl.DataFrame] = []
        left: list[_Piece] = []
        for piece in self._pieces:
            if piece.last < time:
                taken.append(piece.left())
            elif piece.first >= time:
                left.append(piece)
            else:
                rows, rest = piece.cut(time)
                taken += [rows] if rows.height else []
                left.append(rest)
        self._pieces = left
        if taken:
            self._changes.drop(time - 1)
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
        pieces = tuple(self._pieces)
        return FrozenRows(self._descriptor, lambda: [piece.left() for piece in pieces])

    def freeze_increment(self, increment: Increment) -> Frozen:
        """References to the frames that have come."""
        changed = self._changes.freeze(increment, sum(piece.height for piece in self._pieces))
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        return row_changes(self._descriptor, increment, changed)


class FrozenRows(FrozenState):
    """The waiting rows of one subtask as they were at a barrier."""

    def __init__(
        self, descriptor: StateDescriptor, frames: Callable[[], Sequence[pl.DataFrame]]
    ) -> None:
        self.descriptor = descriptor
        self._frames = frames

    def table(self) -> pl.DataFrame:
        """The canonical table, sorted by key group, keys, time, and then arrival."""
        frames = self._frames()
        if not frames:
            return pl.DataFrame(schema=table_schema(self.descriptor))
        keys = [KEY_GROUP, *self.descriptor.keys]
        return pl.concat(frames).sort(*keys, EVENT_TIME, maintain_order=True)


def row_changes(
    descriptor: StateDescriptor, increment: Increment, changed: Logged
) -> FrozenChanges:
    """Rows that have come, and up to when they have gone, as a checkpoint writes them."""
    pieces = changed.pieces
    frozen = FrozenRows(descriptor, lambda: [piece.left(EVENT_TIME) for piece in pieces])
    return FrozenChanges(
        descriptor, since=increment.base, by=(), rows=frozen.tables, dropped=changed.until
    )
