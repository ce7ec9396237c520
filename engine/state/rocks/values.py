"""Values on disk: what each key has, as one entry.

    address = number of the state, key group, key columns     in the order of the canonical table
    entry   = the key, and what it has                        entries.py

Cost     a batch is one multi-get with sorted addresses and one WriteBatch. A list is one entry. A
         snapshot is read from front to back, a restored one written so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import polars as pl
from rocksdict import WriteBatch

from engine.state.contract import FrozenState, StateDescriptor, StateKind
from engine.state.handles import DELETED, Agenda, Key, ValueHandle
from engine.state.rocks.addresses import MANY, Addresses
from engine.state.rocks.agenda import RocksAgenda
from engine.state.rocks.entries import Entries, PackedEntries, entries_of
from engine.state.rocks.parts import PartedState
from engine.state.rocks.place import Place
from engine.state.rocks.store import Scan
from engine.state.tables import continued, items_of, table_of

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
        self._entries = entries_of(descriptor)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """One multi-get: sorted keys are read twice as fast."""
        found = self._store.get(sorted(set(self._addresses.of_many(list(keys)))))
        return dict(self._entries.loaded_many([entry for entry in found if entry is not None]))

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """One WriteBatch."""
        batch = WriteBatch(raw_mode=True)
        kept = {key: item for key, item in values.items() if item is not DELETED}
        for address, entry in self._stored(kept):
            batch.put(address, entry)
        if len(kept) < len(values):
            for address in self._addresses.of_many([key for key in values if key not in kept]):
                batch.delete(address)
        self._store.write(batch)

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

    def freeze(self) -> FrozenState:
        """A scan of the database."""
        scan = self._store.scan(self._prefix)
        return FrozenRocksValues(self.descriptor, scan, self._entries, self._part_bytes)


class FrozenRocksValues(PartedState):
    """One state as it was at a barrier."""

    def __init__(
        self, descriptor: StateDescriptor, scan: Scan, entries: Entries, part_bytes: int
    ) -> None:
        self.descriptor = descriptor
        self._scan = scan
        self._entries = entries
        self._part_bytes = part_bytes // entries.growth

    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table in parts, which are in its order."""
        return map(self._entries.table, self._scan.parts(self._part_bytes))
