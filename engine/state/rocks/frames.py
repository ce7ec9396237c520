"""Rows per key on disk: pieces of columns, and per key a note of which there are.

    key ──▶ note: [(number, rows), …]
    key, number ──▶ piece: some rows of the key

    append_many ──▶ one read of the notes, one WriteBatch      many small pieces become one

Cost     a row is written about log8(rows of its key) times; what a batch touches is read together.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import polars as pl
from rocksdict import WriteBatch

from engine.state.contract import ROW_INDEX, Frozen, FrozenState, Increment, StateDescriptor
from engine.state.frames import FrozenFrames, behind, frame_changes, rows_by_key, taken_in
from engine.state.handles import FramesHandle, Key
from engine.state.rocks.addresses import Addresses, group_of, ordered
from engine.state.rocks.blocks import packed, size_of, unpacked
from engine.state.rocks.parts import PartedState, in_parts
from engine.state.rocks.place import Place
from engine.state.rocks.store import View
from engine.state.row_changes import AppendChanges, Appended

_NOTE, _PIECE = b"\0", b"\1"


@dataclass(frozen=True, slots=True)
class _Note:
    """What one key has: (number, rows) of each piece, in order."""

    pieces: tuple[tuple[int, int], ...] = ()

    def taken_in(self, rows: int) -> tuple[tuple[int, int], ...]:
        """The last pieces that one of so many rows is put together with; mostly none."""
        before = (held for _, held in reversed(self.pieces))
        return self.pieces[len(self.pieces) - taken_in(rows, before) :]

    @property
    def rows(self) -> int:
        """How many it has."""
        return sum(rows for _, rows in self.pieces)

    @property
    def next(self) -> int:
        """The number of the next piece."""
        return self.pieces[-1][0] + 1 if self.pieces else 0


class RocksFrames(FramesHandle):
    """The rows of each key of one subtask."""

    def __init__(self, descriptor: StateDescriptor, place: Place) -> None:
        self.descriptor = descriptor
        self._columns = [name for name in descriptor.values if name != ROW_INDEX]
        self._prefix = place.prefix
        self._store = place.store
        self._part_bytes = place.budget.part_bytes
        self._addresses = Addresses(place.prefix, descriptor.keys)
        self._changes = AppendChanges(place.layers)
        self._rows = 0

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Sequence[pl.DataFrame]]:
        """The frames of those keys that have rows."""
        notes = self._notes(keys)
        pieces = self._read({key: note.pieces for key, note in notes.items()})
        return {key: frames for key, frames in pieces.items() if frames}

    def append_many(self, rows: Mapping[Key, Sequence[pl.DataFrame]]) -> None:
        """Add frames to what keys have."""
        fresh = {
            key: pl.concat([frame.select(self._columns) for frame in frames])
            for key, frames in rows.items()
            if any(frame.height for frame in frames)
        }
        notes = self._notes(fresh)
        taken = {key: notes[key].taken_in(frame.height) for key, frame in fresh.items()}
        before = self._read(taken)
        batch = WriteBatch(raw_mode=True)
        for key, frame in fresh.items():
            piece = pl.concat([*before[key], frame], rechunk=True)
            for number, _ in taken[key]:
                batch.delete(self._piece(key, number))
            note = notes[key]
            kept = note.pieces[: len(note.pieces) - len(taken[key])]
            batch.put(self._piece(key, note.next), packed(piece))
            content = key, (*kept, (note.next, piece.height))
            batch.put(self._note(key), pickle.dumps(content, pickle.HIGHEST_PROTOCOL))
            self._rows += frame.height
            if self._changes.tracks:
                self._changes.note_appended(key, note.rows, frame.height)
        self._store.write(batch)

    def remove_many(self, keys: Iterable[Key]) -> None:
        """Forget the rows of keys."""
        batch = WriteBatch(raw_mode=True)
        for key, note in self._notes(keys).items():
            batch.delete(self._note(key))
            for number, _ in note.pieces:
                batch.delete(self._piece(key, number))
            self._rows -= note.rows
            if self._changes.tracks and note.pieces:
                self._changes.note_removed(key)
        self._store.write(batch)

    def load(self, table: pl.DataFrame) -> None:
        """Add rows of a canonical table, or of the next part of one."""
        self.append_many({key: [rows] for key, rows in rows_by_key(self.descriptor, table)})

    def _notes(self, keys: Iterable[Key]) -> dict[Key, _Note]:
        addresses = {self._note(key): key for key in keys}
        wanted = sorted(addresses)
        found = zip(wanted, self._store.get(wanted), strict=True)
        return {
            addresses[address]: _Note() if raw is None else _Note(_content(raw)[1])
            for address, raw in found
        }

    def _read(
        self, pieces: Mapping[Key, Sequence[tuple[int, int]]]
    ) -> dict[Key, list[pl.DataFrame]]:
        """Some pieces of some keys, all at once."""
        wanted = [(key, self._piece(key, number)) for key in pieces for number, _ in pieces[key]]
        found: dict[Key, list[pl.DataFrame]] = {key: [] for key in pieces}
        raws = self._store.get([address for _, address in wanted])
        for (key, address), raw in zip(wanted, raws, strict=True):
            found[key].append(unpacked(address, raw))
        return found

    def _note(self, key: Key) -> bytes:
        return self._addresses.of(key) + _NOTE

    def _piece(self, key: Key, number: int) -> bytes:
        return self._addresses.of(key) + _PIECE + ordered(number)

    def freeze(self) -> FrozenState:
        """A view of the database."""
        view = self._store.view()
        return FrozenRocksFrames(self.descriptor, view, self._prefix, self._part_bytes)

    def freeze_increment(self, increment: Increment) -> Frozen:
        """The same, or a view of the database, and where in it rows have come."""
        changed = self._changes.freeze(increment, self._rows)
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        rows = partial(self._come, self._store.view(), changed)
        return frame_changes(self.descriptor, increment, changed, rows)

    def _come(self, view: View, changed: Appended) -> Iterator[pl.DataFrame]:
        """The rows that have come, some keys at a time; off the subtask's thread."""
        found = (self._behind(view, key, start) for key, start in sorted(changed.starts.items()))
        for part in in_parts(found, lambda each: size_of(each[1]), self._part_bytes):
            yield FrozenFrames(self.descriptor, dict(part), changed.starts).table()

    def _behind(self, view: View, key: Key, start: int) -> tuple[Key, tuple[pl.DataFrame, ...]]:
        """The rows of a key from one on."""
        [raw] = view.get([self._note(key)])
        wanted: list[bytes] = []
        for number, rows in () if raw is None else _content(raw)[1]:
            if start < rows or wanted:
                wanted.append(self._piece(key, number))
            else:
                start -= rows
        pieces = zip(wanted, view.get(wanted), strict=True)
        return key, behind((unpacked(*piece) for piece in pieces), start)


class FrozenRocksFrames(PartedState):
    """The rows of one subtask's keys as they were at a barrier."""

    def __init__(
        self, descriptor: StateDescriptor, view: View, prefix: bytes, part_bytes: int
    ) -> None:
        self.descriptor = descriptor
        self._view = view
        self._prefix = prefix
        self._part_bytes = part_bytes

    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table, some key groups at a time."""
        held: dict[Key, tuple[pl.DataFrame, ...]] = {}
        size_bytes = 0
        stored = self._view.items(self._prefix)
        for _, group in groupby(stored, key=lambda each: group_of(each[0], len(self._prefix))):
            if size_bytes > self._part_bytes:
                yield FrozenFrames(self.descriptor, held).table()
                held, size_bytes = {}, 0
            key, left = (), 0
            # The note of a key comes before its pieces, and says how many there are.
            for address, raw in group:
                if left:
                    held[key] = (*held[key], unpacked(address, raw))
                    left -= 1
                else:
                    key, pieces = _content(raw)
                    held[key], left = (), len(pieces)
                size_bytes += len(raw)
        yield FrozenFrames(self.descriptor, held).table()


def _content(raw: bytes) -> tuple[Key, tuple[tuple[int, int], ...]]:
    content: tuple[Key, tuple[tuple[int, int], ...]] = pickle.loads(raw)  # noqa: S301  we wrote it
    return content
