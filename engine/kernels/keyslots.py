"""Key slots: the keys of rows as small numbers without gaps, by first appearance.

    one column   integers, times, booleans --64 bits--> slot       text --its bytes--> slot
    several      (slot of the first, slot of the next) --64 bits--> slot, and so on

Shapes   `of` gives one Int32 per row; `known` gives the key columns as they came.
Cost     a row costs one look into a table; hashing to key groups is once per key.
Errors   FunctionError for a null key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.kernels.loading import active
from engine.kernels.plain import FACTOR
from engine.keygroups import key_groups, refuse_nulls

Slots = npt.NDArray[np.int32]
_Words = npt.NDArray[np.uint64]
_Rows = npt.NDArray[np.int64]

_ROOM = 1_024

_FEW_KEYS = 2**16
"""Not worth to forget."""


class KeySlots:
    """Gives each key a slot. `clear` takes all of them back.

    >>> slots = KeySlots(["carrier"], 128)
    >>> slots.of(pl.DataFrame({"carrier": ["UA", "AA", "UA"]})).tolist(), len(slots)
    ([0, 1, 0], 2)
    >>> [column.to_list() for column in slots.known(np.array([1]))]
    [[127], ['AA']]
    """

    def __init__(self, keys: Sequence[str], max_parallelism: int) -> None:
        self.keys = tuple(keys)
        self._max_parallelism = max_parallelism
        self.clear()

    def __len__(self) -> int:
        return self._count

    def are_worn(self, used: int) -> bool:
        """Whether so many keys are of no use any more that to begin anew is cheaper."""
        return self._count > max(_FEW_KEYS, 4 * used)

    def clear(self) -> None:
        """Forget all keys."""
        self._count = 0
        self._columns: list[_Texts | _Words64 | None] = [None] * len(self.keys)
        self._pairs = [_Words64() for _ in self.keys[1:]]
        self._frames: list[pl.DataFrame] = []

    def of(self, frame: pl.DataFrame) -> Slots:
        """The slot of each row. Raises FunctionError."""
        slots, fresh = self._of_column(0, frame)
        for place in range(1, len(self.keys)):
            more, _ = self._of_column(place, frame)
            both = slots.astype(np.uint64) << np.uint64(32) | more.astype(np.uint64)
            slots, fresh = self._pairs[place - 1].of(both)
        if len(fresh):
            places = pl.Series(fresh.astype(np.uint32))
            keys = pl.DataFrame([frame.get_column(key)[places] for key in self.keys])
            groups = key_groups(keys, self.keys, self._max_parallelism)
            self._frames.append(keys.insert_column(0, groups))
            self._count += len(fresh)
        return slots

    def known(self, slots: npt.NDArray[np.int64] | None = None) -> list[pl.Series]:
        """The key groups and the key columns of some slots, or of all in order."""
        if len(self._frames) > 1:
            self._frames = [pl.concat(self._frames, rechunk=True)]
        [frame] = self._frames
        if slots is None:
            return frame.get_columns()
        # Column by column on this thread: the thread pool takes longer to answer than this does.
        places = pl.Series(slots.astype(np.uint32))
        return [column[places] for column in frame.get_columns()]

    def _of_column(self, place: int, frame: pl.DataFrame) -> tuple[Slots, _Rows]:
        column = frame.get_column(self.keys[place])
        refuse_nulls(column)
        table = self._columns[place]
        if column.dtype in (pl.String, pl.Binary):
            if not isinstance(table, _Texts):
                table = self._columns[place] = _Texts()
            return table.of(column)
        if not isinstance(table, _Words64):
            table = self._columns[place] = _Words64()
        return table.of(_words(column))


def _words(column: pl.Series) -> _Words:
    """The 64 bits of each value."""
    whole = column if column.dtype == pl.UInt64 else column.cast(pl.Int64)
    return np.ascontiguousarray(whole.to_numpy()).view(np.uint64)


class _Words64:
    """Slots of 64-bit words."""

    def __init__(self) -> None:
        self.count = 0
        self._known = np.empty(0, dtype=np.uint64)
        self._marks = np.empty(0, dtype=np.int32)

    def of(self, words: _Words) -> tuple[Slots, _Rows]:
        """The slot of each row, and the rows in which a slot was new."""
        rows = len(words)
        if self.count + rows > len(self._known):
            self._grow(self.count + rows)
        slots, fresh = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int64)
        count = active().intern_words(words, slots, self._marks, self._known, self.count, fresh)
        fresh, self.count = fresh[: count - self.count], count
        return slots, fresh

    def _grow(self, room: int) -> None:
        room = _room(room)
        known = np.empty(room, dtype=np.uint64)
        known[: self.count] = self._known[: self.count]
        self._known, self._marks = known, np.zeros(2 * room, dtype=np.int32)
        with np.errstate(over="ignore"):
            hashes = (known ^ known >> np.uint64(32)) * np.uint64(FACTOR)
        active().index(hashes, self.count, self._marks)


class _Texts:
    """Slots of texts."""

    def __init__(self) -> None:
        self.count = 0
        self._hashes = np.empty(0, dtype=np.uint64)
        self._starts = np.zeros(1, dtype=np.int64)
        self._arena = np.empty(0, dtype=np.uint8)
        self._marks = np.empty(0, dtype=np.int32)

    def of(self, column: pl.Series) -> tuple[Slots, _Rows]:
        """The slot of each row, and the rows in which a slot was new."""
        rows = len(column)
        offsets, data = _bytes(column)
        if self.count + rows > len(self._hashes):
            self._grow(_room(self.count + rows))
        used = int(self._starts[self.count])
        size = int(offsets[-1] - offsets[0])
        if used + size > len(self._arena):
            arena = np.empty(_room(used + size), dtype=np.uint8)
            arena[:used] = self._arena[:used]
            self._arena = arena
        slots, fresh = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int64)
        count = active().intern_text(
            offsets,
            data,
            slots,
            self._marks,
            self._hashes,
            self._starts,
            self._arena,
            self.count,
            fresh,
        )
        fresh, self.count = fresh[: count - self.count], count
        return slots, fresh

    def _grow(self, room: int) -> None:
        hashes, starts = np.empty(room, dtype=np.uint64), np.zeros(room + 1, dtype=np.int64)
        hashes[: self.count] = self._hashes[: self.count]
        starts[: self.count + 1] = self._starts[: self.count + 1]
        self._hashes, self._starts = hashes, starts
        self._marks = np.zeros(2 * room, dtype=np.int32)
        active().index(hashes, self.count, self._marks)


def _bytes(column: pl.Series) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets and bytes of texts."""
    array = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    first = array.offset
    places = np.frombuffer(offsets, dtype=np.int64)[first : first + len(array) + 1]
    size = 0 if data is None else data.size
    return places, np.frombuffer(data, dtype=np.uint8) if size else np.empty(0, dtype=np.uint8)


def _room(wanted: int) -> int:
    """A power of two with room for more."""
    return max(_ROOM, 1 << wanted.bit_length())
