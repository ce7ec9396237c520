"""Values on disk: what each key has, as one entry.

    address = number of the state, key group, key columns     in the order of the canonical table
    entry   = the key, and what it has                        entries.py

Cost     a batch is one multi-get with sorted addresses and one WriteBatch. A list is one entry. A
         snapshot is read from front to back, a restored one written so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, repeat
from typing import Any

import polars as pl
from rocksdict import WriteBatch

from engine.state.contract import Frozen, FrozenState, Increment, StateDescriptor, StateKind
from engine.state.handles import DELETED, Agenda, Key, ValueHandle
from engine.state.rocks.addresses import MANY, Addresses
from engine.state.rocks.agenda import RocksAgenda
from engine.state.rocks.changed import ChangedEntries, Counted, RowCount, WrittenChanges
from engine.state.rocks.entries import Entries, PackedEntries, entries_of
from engine.state.rocks.parts import PartedState
from engine.state.rocks.place import Place
from engine.state.rocks.store import Scan
from engine.state.tables import continued, items_of, key_table, table_of

_LOADED = 10_000
"""So many keys are written at once when a state is restored."""

_AGENDA = b"\xff"
"""No state has so large a number that its addresses begin so."""


class RocksValues(ValueHandle):
    """What each key has in one state."""

    def __init__(self, descriptor: StateDescriptor, place: Place) -> None:
        self.descriptor = descriptor
        self._place = place
        self._prefix = place.prefix
        self._store = place.store
        self._part_bytes = place.budget.part_bytes
        self._addresses = Addresses(place.prefix, descriptor.keys)
        self._changes = WrittenChanges(place.layers)
        self._count = RowCount()
        self._entries = entries_of(descriptor)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """One multi-get: sorted keys are read twice as fast."""
        found = self._store.get(sorted(set(self._addresses.of_many(list(keys)))))
        return dict(self._entries.loaded_many([entry for entry in found if entry is not None]))

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """One WriteBatch."""
        kept = {key: item for key, item in values.items() if item is not DELETED}
        stored = list(self._stored(kept))
        gone = [] if len(kept) == len(values) else [key for key in values if key not in kept]
        removed = self._addresses.of_many(gone)
        batch = WriteBatch(raw_mode=True)
        for address, entry in stored:
            batch.put(address, entry)
        for address in removed:
            batch.delete(address)
        self._store.write(batch)
        self._count.written += len(values)
        self._changes.note(chain(self._noted(stored, kept), zip(removed, repeat(None))))

    def _noted(
        self, stored: Iterable[tuple[bytes, bytes]], items: Mapping[Key, Any]
    ) -> Iterable[tuple[bytes, bytes | None]]:
        if self.descriptor.kind is StateKind.VALUE:
            return stored
        # A list without items has no rows.
        pairs = zip(stored, items.values(), strict=True)
        return ((address, entry if item else None) for (address, entry), item in pairs)

    def _stored(self, items: Mapping[Key, Any]) -> Iterable[tuple[bytes, bytes]]:
        """The address and the entry of each key."""
        if isinstance(self._entries, PackedEntries) and len(items) >= MANY:
            return self._packed(table_of(self.descriptor, items.items()), self._entries)
        dumped, address_of = self._entries.dumped, self._addresses.of
        return ((address_of(key), dumped(key, item)) for key, item in items.items())

    def _packed(self, table: pl.DataFrame, entries: PackedEntries) -> Iterable[tuple[bytes, bytes]]:
        """The address and the entry of each row of a canonical table."""
        addresses = self._addresses.of_rows(table)
        return zip(addresses.to_list(), entries.of_rows(table).to_list(), strict=True)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Everything, by key."""
        return map(self._entries.loaded, self._store.scan(self._prefix))

    def agenda(self, grain: int) -> Agenda:
        """An agenda on disk."""
        return RocksAgenda(
            self.descriptor.keys, replace(self._place, prefix=_AGENDA + self._prefix), grain
        )

    def load(self, table: pl.DataFrame) -> None:
        """Add rows of a canonical table, or of a part of one."""
        if isinstance(self._entries, PackedEntries):
            self._load_packed(table, self._entries)
            return
        items = items_of(self.descriptor, table)
        first = next(items, None)
        if first is None:
            return
        key, item = first
        if self.descriptor.kind is not StateKind.VALUE:
            # A part of a table may begin within a key.
            item = continued(self.get_many([key]).get(key), item)
        self.put_many({key: item})
        while chunk := dict(islice(items, _LOADED)):
            self.put_many(chunk)

    def _load_packed(self, table: pl.DataFrame, entries: PackedEntries) -> None:
        for rows in table.iter_slices(_LOADED):
            batch = WriteBatch(raw_mode=True)
            for address, entry in self._packed(rows, entries):
                batch.put(address, entry)
            self._store.write(batch)
            self._count.written += rows.height

    def freeze(self) -> FrozenState:
        """A scan of the database."""
        scan, counted = self._store.scan(self._prefix), self._count.counting()
        return FrozenRocksValues(self.descriptor, scan, self._entries, counted, self._part_bytes)

    def freeze_increment(self, increment: Increment) -> Frozen:
        """The same, or references to the entries that were written."""
        written = self._changes.freeze(increment, self._count.rows)
        if written is None:
            return self.freeze().as_base(self._changes.tracks)
        changed = ChangedEntries(
            written,
            table=lambda entries: self._entries.table([entry for _, entry in entries]),
            removed=lambda gone: key_table(self.descriptor, map(self._addresses.key_at, gone)),
            part_bytes=self._part_bytes // self._entries.growth,
        )
        return changed.frozen(self.descriptor, increment, by=[*self.descriptor.keys])


class FrozenRocksValues(PartedState):
    """One state as it was at a barrier."""

    def __init__(
        self,
        descriptor: StateDescriptor,
        scan: Scan,
        entries: Entries,
        counted: Counted,
        part_bytes: int,
    ) -> None:
        self.descriptor = descriptor
        self._scan = scan
        self._entries = entries
        self._counted = counted
        self._part_bytes = part_bytes // entries.growth

    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table in parts, which are in its order."""
        parts = self._scan.parts(self._part_bytes)
        return self._counted.through(map(self._entries.table, parts))
