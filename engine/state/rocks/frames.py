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
from itertools import groupby

import polars as pl
from rocksdict import WriteBatch

from engine.state.contract import ROW_INDEX, StateDescriptor
from engine.state.frames import FrozenFrames, rows_by_key, taken_in
from engine.state.handles import FramesHandle, Key
from engine.state.rocks.addresses import Addresses, group_of, ordered
from engine.state.rocks.blocks import packed, unpacked
from engine.state.rocks.parts import PartedState
from engine.state.rocks.place import Place
from engine.state.rocks.store import View

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
        self._store.write(batch)

    def remove_many(self, keys: Iterable[Key]) -> None:
        """Forget the rows of keys."""
        batch = WriteBatch(raw_mode=True)
        for key, note in self._notes(keys).items():
            batch.delete(self._note(key))
            for number, _ in note.pieces:
                batch.delete(self._piece(key, number))
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

    def freeze(self) -> FrozenRocksFrames:
        """A view of the database."""
        view = self._store.view()
        return FrozenRocksFrames(self.descriptor, view, self._prefix, self._part_bytes)


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
