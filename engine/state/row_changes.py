"""What has changed in states of rows: those that keys have in order, and those that come and go.

    AppendChanges   rows behind those that a key has        windows that keep rows
    LogChanges      rows that come, and go by their time    partial windows, waiting rows

Cost     a reference to each frame that has come, as long as there is a checkpoint to build on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from engine.elements import MIN_TIME, Micros
from engine.state.changes import NOTED_BYTES, Changes
from engine.state.handles import Key


@dataclass(slots=True)
class Appended:
    """What keys have got behind what they had, and which have lost all they had."""

    starts: dict[Key, int] = field(default_factory=dict)
    """Behind how many rows those of each key begin that have come since."""
    removed: set[Key] = field(default_factory=set)
    rows: int = 0


class AppendChanges(Changes[Appended]):
    """Of keys with rows in order, to which more are added."""

    def note_appended(self, key: Key, before: int, rows: int) -> None:
        """A key that had so many rows has got some more."""
        self._open.starts.setdefault(key, before)
        self._open.rows += rows
        self._check()

    def note_removed(self, key: Key) -> None:
        """A key has lost all rows."""
        self._open.removed.add(key)
        self._open.starts[key] = 0

    def _none(self) -> Appended:
        return Appended()

    def _size(self, noted: Appended) -> int:
        return noted.rows + len(noted.removed)

    def _bytes(self, noted: Appended) -> int:
        return (len(noted.starts) + len(noted.removed)) * NOTED_BYTES

    def _union(self, noted: Sequence[Appended]) -> Appended:
        found = Appended()
        for each in noted:
            found.removed |= each.removed
            found.starts.update(dict.fromkeys(each.removed, 0))
            for key, start in each.starts.items():
                found.starts.setdefault(key, start)
            found.rows += each.rows
        return found


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that came together, without those whose time is `after` or less."""

    rows: pl.DataFrame
    last: int
    """The greatest time in them."""
    size_bytes: int
    after: int = MIN_TIME

    def left(self, time: str) -> pl.DataFrame:
        """Those that are still there; `time`: the column."""
        return self.rows if self.after == MIN_TIME else self.rows.filter(pl.col(time) > self.after)


@dataclass(slots=True)
class Logged:
    """What has come, and up to which time all that was there has gone."""

    pieces: list[Piece] = field(default_factory=list)
    dropped: int = MIN_TIME
    rows: int = 0
    size_bytes: int = 0
    _drops: list[tuple[int, int]] = field(default_factory=list)
    """(so many pieces there were, up to which time their rows went): not yet left out of them."""

    @property
    def until(self) -> int | None:
        """Up to which time all has gone; None when nothing has."""
        return None if self.dropped == MIN_TIME else self.dropped

    def add(self, piece: Piece) -> None:
        """Rows have come."""
        self.pieces.append(piece)
        self.rows += piece.rows.height
        self.size_bytes += piece.size_bytes

    def drop(self, time: int) -> None:
        """All rows up to a time are gone. Noted only: it may happen with every batch."""
        self.dropped = max(self.dropped, time)
        pieces = len(self.pieces)
        if self._drops and self._drops[-1][0] == pieces:
            time = max(time, self._drops.pop()[1])
        if pieces and time != MIN_TIME:
            self._drops.append((pieces, time))

    def settle(self) -> None:
        """Leave out of the pieces what is gone."""
        if not self._drops:
            return
        left: list[Piece] = []
        after = MIN_TIME
        while self.pieces:
            while self._drops and self._drops[-1][0] == len(self.pieces):
                after = max(after, Micros(self._drops.pop()[1]))
            piece = self.pieces.pop()
            if piece.last > after:
                left.append(replace(piece, after=max(piece.after, after)))
        self.pieces = left[::-1]
        self.rows = sum(piece.rows.height for piece in left)
        self.size_bytes = sum(piece.size_bytes for piece in left)


class LogChanges(Changes[Logged]):
    """Of rows that come, stay as they are, and go when their time has come."""

    def note(self, rows: pl.DataFrame, last: int) -> None:
        """Rows have come; `last`: the greatest time in them."""
        if self._marks:
            self._open.add(Piece(rows, last, int(rows.estimated_size())))
            self._check()

    def drop(self, time: int) -> None:
        """All rows up to a time are gone."""
        if self._marks:
            self._open.drop(time)

    def _check(self) -> None:
        if self._is_too_much():
            self._open.settle()
        super()._check()

    def _none(self) -> Logged:
        return Logged()

    def _size(self, noted: Logged) -> int:
        return noted.rows

    def _bytes(self, noted: Logged) -> int:
        return noted.size_bytes

    def _union(self, noted: Sequence[Logged]) -> Logged:
        found = Logged()
        for each in noted:
            each.settle()
            found.drop(each.dropped)
            for piece in each.pieces:
                found.add(piece)
        found.settle()
        return found
