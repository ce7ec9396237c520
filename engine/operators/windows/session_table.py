"""Session table: the open sessions of one subtask, side by side in arrays.

    fragment --key--> slot --chain of its sessions--> session   first, last, cells of aggregates

A session is a number; those of a key are chained. A fragment joins what it touches, so sessions are
whole at any time, and only their last times are looked at to find those that are over.

Shapes   fragments (keys…, session.first, session.last, <partials>); sessions the same, with
         key_group before. Partials that no cell can hold wait by session number, as rows.
Order    partials merge exactly, so neither the order of fragments nor their way can be seen.
Cost     a fragment costs some tens of nanoseconds and a few per aggregate; closing looks at one
         number per open session. Keys are forgotten when most of them have no session any more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.aggregates import Partials
from engine.aggregates.cells import MOST_ROWS, At, extended
from engine.elements import MAX_TIME, MIN_TIME
from engine.kernels import KeySlots, active
from engine.kernels.plain import FREE
from engine.windows import Times

FIRST = "session.first"
LAST = "session.last"
_SESSION = "session.number"

_MOST_FRAMES = 8
"""So many frames of partials outside of cells are merged to one."""

_Numbers = npt.NDArray[np.int32]


class SessionTable:
    """Open sessions by key."""

    def __init__(
        self, keys: Sequence[str], gap: int, partials: Partials, max_parallelism: int
    ) -> None:
        self._gap = gap
        self._slots = KeySlots(keys, max_parallelism)
        self._values = _Values(partials)
        self._merged = 0
        """How many partials some cell may have taken since it was empty."""
        self._earliest: int = MAX_TIME
        """No session has its last row before this."""
        self._empty()

    def add(self, fragments: pl.DataFrame, marks: Times | None = None) -> None:
        """Join fragments to sessions that they touch, and that end after their marks, which ascend.

        `marks`: none is as good as the smallest there is.
        """
        if not fragments.height:
            return
        if self._slots.are_worn(self._used):
            self._renew(forget=True)
        elif self._merged + fragments.height > MOST_ROWS:
            self._renew(forget=False)
        self._merged += fragments.height
        self._join(fragments, marks)

    def close(self, time: int) -> pl.DataFrame | None:
        """Take the sessions whose last row is not after a time; None when there are none."""
        if self._earliest > time:
            return None
        numbers = np.empty_like(self._free)
        count, self._earliest = active().close_sessions(
            time, self._owners, self._heads, self._nexts, self._lasts, numbers
        )
        numbers = numbers[:count]
        firsts, lasts = self._firsts[numbers], self._lasts[numbers]
        self._lasts[numbers] = FREE
        if not count:
            return None
        self._give_back(numbers)
        return pl.DataFrame(
            [
                *self._slots.known(self._owners[numbers].astype(np.int64)),
                pl.Series(FIRST, firsts),
                pl.Series(LAST, lasts),
                *self._values.take(numbers).get_columns()[1:],
            ]
        )

    def all(self) -> pl.DataFrame | None:
        """All sessions, which stay; None when there are none."""
        return self._renew(forget=False)

    def _renew(self, *, forget: bool) -> pl.DataFrame | None:
        sessions = self.close(MAX_TIME)
        if forget:
            self._slots.clear()
            self._empty()
        self._merged = 1  # each in a cell of its own
        if sessions is not None:
            self._join(sessions, None)
        return sessions

    def _empty(self) -> None:
        self._heads = np.zeros(0, dtype=np.int32)
        """The first session of each key; -1 for none."""
        self._owners, self._nexts, self._free = (np.zeros(0, dtype=np.int32) for _ in range(3))
        """The key of each session, the next one of the key; and the numbers of sessions, those that
        are in use first, in no order."""
        self._firsts, self._lasts = (np.zeros(0, dtype=np.int64) for _ in range(2))
        self._used = 0
        """How many numbers are in use."""

    def _join(self, fragments: pl.DataFrame, marks: Times | None) -> None:
        slots = self._slots.of(fragments)
        self._reserve(len(slots))
        lasts = fragments.get_column(LAST).to_numpy()
        self._earliest = min(self._earliest, int(lasts.min()))
        if marks is None:
            marks = np.full(len(lasts), MIN_TIME, dtype=np.int64)
        at, gone, into = (np.empty(len(slots), dtype=np.int32) for _ in range(3))
        taken, moved = active().join_sessions(
            slots,
            (fragments.get_column(FIRST).to_numpy(), lasts, marks),
            self._gap,
            self._heads,
            self._nexts,
            self._firsts,
            self._lasts,
            self._free[self._used :],
            at,
            gone,
            into,
        )
        self._used += taken
        self._owners[at] = slots
        self._values.merge(at, fragments)
        if moved:
            self._values.move(gone[:moved], into[:moved])
            self._give_back(gone[:moved])

    def _give_back(self, numbers: _Numbers) -> None:
        self._used -= len(numbers)
        self._free[self._used : self._used + len(numbers)] = numbers

    def _reserve(self, fragments: int) -> None:
        """Have room for all keys, and for as many sessions more."""
        keys, sessions = len(self._slots), self._used + fragments
        if keys > len(self._heads):
            self._heads = extended(self._heads, 1 << keys.bit_length(), -1)
        known = len(self._free)
        if sessions > known:
            room = 1 << sessions.bit_length()
            self._free = extended(self._free, room, 0)
            self._free[known:] = np.arange(known, room)
            self._owners, self._nexts = (
                extended(each, room, 0) for each in (self._owners, self._nexts)
            )
            self._firsts = extended(self._firsts, room, 0)
            self._lasts = extended(self._lasts, room, FREE)
            self._values.reserve(room)


class _Values:
    """The partials of sessions, by their number."""

    def __init__(self, partials: Partials) -> None:
        self._partials = partials
        cells = partials.cells()
        self._cells = None if cells is None else [each for part in cells.values() for each in part]
        self._rows: list[pl.DataFrame] = []
        """(session.number, <partials>) that are in no cell, in frames."""
        self._room = 0

    def reserve(self, sessions: int) -> None:
        """Have room for so many."""
        self._room = sessions
        for cells in self._cells or ():
            cells.reserve(sessions)

    def merge(self, at: At, partials: pl.DataFrame) -> None:
        """Merge partials with those of sessions."""
        if self._cells is None:
            self._keep(at, partials)
            return
        found = [rows for each in self._cells if (rows := each.odd(partials)) is not None]
        if found:
            odd = np.logical_or.reduce(found)
            self._keep(at[odd], partials.filter(odd))
            at, partials = at[~odd], partials.filter(~odd)
        for cells in self._cells:
            cells.merge(at, partials)

    def move(self, gone: _Numbers, into: _Numbers) -> None:
        """Merge the partials of some sessions with others, one after the other."""
        last: dict[int, int] = {}
        for one, other in zip(gone[::-1].tolist(), into[::-1].tolist(), strict=True):  # rare
            last[one] = last.get(other, other)
        taken = self.take(gone)
        numbers = [last[number] for number in taken.get_column(_SESSION).to_list()]
        self.merge(np.array(numbers, dtype=np.int32), taken)

    def take(self, numbers: _Numbers) -> pl.DataFrame:
        """(session.number, <partials>) of some sessions, one row each in the order of their numbers
        if those ascend; they have none then.
        """
        frames = self._taken_rows(numbers)
        if self._cells is not None:
            at = numbers.astype(np.int64)
            columns = [column for cells in self._cells for column in cells.take(at)]
            frames.append(pl.DataFrame([pl.Series(_SESSION, numbers), *columns]))
            if len(frames) == 1:
                return frames[0]
        return self._merged(frames).sort(_SESSION)

    def _taken_rows(self, numbers: _Numbers) -> list[pl.DataFrame]:
        if not self._rows:
            return []
        wanted = np.zeros(self._room, dtype=np.bool_)
        wanted[numbers] = True
        hits = [wanted[frame.get_column(_SESSION).to_numpy()] for frame in self._rows]
        taken = [frame.filter(hit) for frame, hit in zip(self._rows, hits, strict=True)]
        left = (frame.filter(~hit) for frame, hit in zip(self._rows, hits, strict=True))
        self._rows = [frame for frame in left if frame.height]
        return [frame for frame in taken if frame.height]

    def _keep(self, at: At, partials: pl.DataFrame) -> None:
        columns = partials.select(self._partials.columns.keys()).get_columns()
        self._rows.append(pl.DataFrame([pl.Series(_SESSION, at), *columns]))
        if len(self._rows) > _MOST_FRAMES:
            self._rows = [self._merged(self._rows)]

    def _merged(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return self._partials.merge(pl.concat(frames), [_SESSION], [])
