"""Maps on disk: a small one is one entry, a large one an entry per map key.

    key ──▶ (key, {map key: item})                small: read with the batch, written whole
    key ──▶ (key, None), and behind it            large: read and written map key by map key
            key, map key ──▶ (map key, item)

Cost     a large map costs a read per map key that a batch asks for, and a write per map key that it
         changes, whatever its size. Whoever asks for all entries reads all. It stays large until
         it is cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import polars as pl
from rocksdict import WriteBatch

from engine.state.contract import MAP_KEY, Frozen, FrozenState, Increment, StateDescriptor
from engine.state.handles import DELETED, Key
from engine.state.rocks.addresses import ordering
from engine.state.rocks.changed import ChangedEntries, Counted
from engine.state.rocks.entries import PickledEntries, pickled, unpickled
from engine.state.rocks.parts import PartedState, in_parts
from engine.state.rocks.place import Place
from engine.state.rocks.store import Store, View
from engine.state.rocks.values import RocksValues
from engine.state.tables import items_of, key_table, table_of

_ENTRY, _BEHIND = b"\1", b"\2"
"""Entries of a large map lie between these behind its key's own address."""

_INLINE = 64
"""A map of so many entries is small."""

_ENTRY_BYTES = 64
_LOADED = 1_000
_MISSING: Any = object()


class LargeMap(MutableMapping[Any, Any]):
    """The entries of one key, read as they are asked for; changes stay here until they are put."""

    def __init__(self, store: Store, base: bytes, ordered: Callable[[Any], bytes]) -> None:
        """`base`: the address of the key. `ordered`: makes bytes of map keys."""
        self._store = store
        self._base = base + _ENTRY
        self._ordered = ordered
        self._read: dict[Any, Any] = {}
        self.changes: dict[Any, Any] = {}

    def copy(self) -> LargeMap:
        """A map of its own, with the same entries."""
        copied = LargeMap(self._store, self._base[:-1], self._ordered)
        copied._read, copied.changes = self._read, dict(self.changes)
        return copied

    def __getitem__(self, at: Any) -> Any:
        found = self.changes.get(at, _MISSING)
        if found is _MISSING:
            if at not in self._read:
                [raw] = self._store.get([self.address(at)])
                self._read[at] = DELETED if raw is None else unpickled(raw)[1]
            found = self._read[at]
        if found is DELETED:
            raise KeyError(at)
        return found

    def __setitem__(self, at: Any, item: Any) -> None:
        self.changes[at] = item

    def __delitem__(self, at: Any) -> None:
        self.changes[at] = DELETED

    def scan(self) -> Iterator[tuple[Any, Any]]:
        """All entries, in one go."""
        for _, raw in self._store.view().items(self._base):
            at, item = unpickled(raw)
            if at not in self.changes:
                yield at, item
        yield from ((at, item) for at, item in self.changes.items() if item is not DELETED)

    def __iter__(self) -> Iterator[Any]:
        return (at for at, _ in self.scan())

    def items(self) -> Any:
        """All entries."""
        return dict(self.scan()).items()

    def values(self) -> Any:
        """The items of all entries."""
        return dict(self.scan()).values()

    def __len__(self) -> int:
        return sum(1 for _ in self.scan())

    def __bool__(self) -> bool:
        # Nobody counts a large map to see whether it has become empty.
        return True

    def puts(self) -> Iterator[tuple[bytes, bytes | None]]:
        """What has to be written; None for what has to be deleted."""
        for at, item in self.changes.items():
            yield self.address(at), None if item is DELETED else pickled(at, item)

    def address(self, at: Any) -> bytes:
        """Where the entry of a map key is."""
        return self._base + self._ordered(at)


class RocksMaps(RocksValues):
    """What each key has in one map state: a dict, or a `LargeMap`."""

    def __init__(self, descriptor: StateDescriptor, place: Place) -> None:
        super().__init__(descriptor, place)
        self._inline = max(1, min(_INLINE, place.budget.block_bytes // _ENTRY_BYTES))
        self._ordering = ordering(descriptor.values[MAP_KEY])
        self._known: dict[Key, Mapping[Any, Any] | None] = {}
        """Maps of the last read, None for large ones: what a turn writes it has read before."""

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """One multi-get; large maps are read later."""
        asked = list(keys)
        found = super().get_many(asked)
        self._known = {key: found.get(key, {}) for key in asked}
        return {
            key: self._large(self._addresses.of(key)) if held is None else held
            for key, held in found.items()
        }

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """One WriteBatch, of what has changed in large maps."""
        unknown = [key for key in values if key not in self._known]
        if unknown:
            read = self._known
            self.get_many(unknown)
            self._known |= read
        batch = WriteBatch(raw_mode=True)
        for key, held in values.items():
            if isinstance(held, LargeMap):
                self._put_changes(held, batch)
            else:
                self._put_all(key, {} if held is DELETED else held, batch)
                if held is DELETED:
                    batch.delete(self._addresses.of(key))
        self._store.write(batch)

    def _put_changes(self, large: LargeMap, batch: WriteBatch) -> None:
        puts = list(large.puts())
        for address, content in puts:
            if content is None:
                batch.delete(address)
            else:
                batch.put(address, content)
        self._count.written += len(puts)
        self._changes.note(puts)

    def _put_all(self, key: Key, held: Mapping[Any, Any], batch: WriteBatch) -> None:
        """Put a map in the place of another."""
        base, before = self._addresses.of(key), self._known[key]
        is_large = len(held) > self._inline
        large = self._large(base)
        large.changes = dict(held)
        self._count.written += len(held)
        if before is None:
            batch.delete_range(base + _ENTRY, base + _BEHIND)
            # Nobody knows what it held, and to find out may take long.
            self._changes.forget()
        else:
            self._changes.note((large.address(at), None) for at in before if at not in held)
        batch.put(base, pickled(key, None if is_large else held))
        # What has changed is noted entry by entry, also of small maps.
        puts = list(large.puts()) if is_large or self._changes.tracks else []
        if is_large:
            for address, content in puts:
                batch.put(address, content)
        self._changes.note(puts)
        self._known[key] = None if is_large else held

    def _large(self, address: bytes) -> LargeMap:
        return LargeMap(self._store, address, self._ordering.raw)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Everything, by key group."""
        for address, key, held, _ in _walk(self._store.view().items(self._prefix)):
            if not isinstance(held, _Entry):
                yield key, self._large(address) if held is None else held

    def load(self, table: pl.DataFrame) -> None:
        """Add rows of a canonical table, or of a part of one."""
        items = items_of(self.descriptor, table)
        while chunk := dict(islice(items, _LOADED)):
            for key, before in self.get_many(chunk).items():
                # A part may begin within a key.
                joined = before.copy()
                joined.update(chunk[key])
                chunk[key] = joined
            self.put_many(chunk)

    def freeze(self) -> FrozenState:
        """A view of the database."""
        view, counted = self._store.view(), self._count.counting()
        return FrozenRocksMaps(self.descriptor, view, self._prefix, counted, self._part_bytes)

    def freeze_increment(self, increment: Increment) -> Frozen:
        """The same, or references to the entries that were written."""
        written = self._changes.freeze(increment, self._count.rows)
        if written is None:
            return self.freeze().as_base(self._changes.tracks)
        changed = ChangedEntries(
            written, self._table, self._removed, self._part_bytes // PickledEntries.growth
        )
        return changed.frozen(self.descriptor, increment, by=[*self.descriptor.keys, MAP_KEY])

    def _table(self, entries: Sequence[tuple[bytes, bytes]]) -> pl.DataFrame:
        found = ((self._addresses.key_at(address), unpickled(raw)) for address, raw in entries)
        return table_of(self.descriptor, ((key, {at: item}) for key, (at, item) in found))

    def _removed(self, gone: Iterable[bytes]) -> pl.DataFrame:
        return key_table(self.descriptor, map(self._entry_at, gone), MAP_KEY)

    def _entry_at(self, address: bytes) -> tuple[Any, ...]:
        """The key and the map key of an entry."""
        key, end = self._addresses.key_in(address)
        return (*key, self._ordering.value_at(address, end + len(_ENTRY))[0])


class FrozenRocksMaps(PartedState):
    """One map state as it was at a barrier."""

    def __init__(
        self,
        descriptor: StateDescriptor,
        view: View,
        prefix: bytes,
        counted: Counted,
        part_bytes: int,
    ) -> None:
        self.descriptor = descriptor
        self._view = view
        self._prefix = prefix
        self._counted = counted
        self._part_bytes = part_bytes

    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table in parts, which are in its order; a large map may be cut."""
        stored = self._view.items(self._prefix)
        return self._counted.through(_tables(self.descriptor, stored, self._part_bytes))


class _Entry(NamedTuple):
    """One entry of a large map."""

    at: Any
    item: Any


class _Stored(NamedTuple):
    """What lies at one address."""

    address: bytes
    """Of the key."""
    key: Key
    held: Mapping[Any, Any] | _Entry | None
    """All of a small map; or None, and after it the entries of a large one."""
    size_bytes: int

    @property
    def entries(self) -> Mapping[Any, Any]:
        """Some entries of the map of the key."""
        if isinstance(self.held, _Entry):
            return {self.held.at: self.held.item}
        return {} if self.held is None else self.held


def _walk(stored: Iterable[tuple[bytes, bytes]]) -> Iterator[_Stored]:
    large: bytes | None = None
    base, key = b"", ()
    for address, raw in stored:
        if large is not None and address.startswith(large):
            yield _Stored(base, key, _Entry(*unpickled(raw)), len(raw))
            continue
        base, (key, held) = address, unpickled(raw)
        large = address + _ENTRY if held is None else None
        yield _Stored(base, key, held, len(raw))


def _tables(
    descriptor: StateDescriptor, stored: Iterable[tuple[bytes, bytes]], part_bytes: int
) -> Iterator[pl.DataFrame]:
    """Canonical tables of what is stored."""
    limit = part_bytes // PickledEntries.growth
    for part in in_parts(_walk(stored), attrgetter("size_bytes"), limit):
        yield table_of(descriptor, ((each.key, each.entries) for each in part))
