"""Values on disk: what each key has, as one entry.

    address = number of the state, key group, key columns     (bytes, in order of key group)
    entry   = the key as Python objects, and what it has      (pickled)

Cost     a batch is one multi-get with sorted addresses and one WriteBatch. A list is one entry.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import polars as pl
from rocksdict import WriteBatch

from engine.state.contract import FrozenState, StateDescriptor, StateKind
from engine.state.handles import DELETED, Agenda, Key, ValueHandle
from engine.state.rocks.addresses import group_of, of_key
from engine.state.rocks.agenda import RocksAgenda
from engine.state.rocks.parts import PartedState
from engine.state.rocks.place import Place
from engine.state.rocks.store import View
from engine.state.tables import continued, in_order, items_of, table_of

_LOADED = 10_000
"""So many keys are written at once when a state is restored."""

_AGENDA = b"\xff"
"""No state has so large a number that its addresses begin so."""

_GROWTH = 8
"""A Python object takes about so many times the bytes of its pickle."""


Stored = tuple[bytes, Key, Any]
"""An address, its key, and what it has."""


class RocksValues(ValueHandle):
    """What each key has in one state."""

    def __init__(self, descriptor: StateDescriptor, place: Place) -> None:
        self.descriptor = descriptor
        self._place = place
        self._prefix = place.prefix
        self._store = place.store
        self._part_bytes = place.budget.part_bytes
        self._temporal = any(dtype.is_temporal() for dtype in descriptor.keys.values())

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """One multi-get: sorted keys are read twice as fast."""
        found = self._store.get(sorted({self._address(key) for key in keys}))
        return dict(entry(value) for value in found if value is not None)

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """One WriteBatch."""
        batch = WriteBatch(raw_mode=True)
        for key, value in values.items():
            if value is DELETED:
                batch.delete(self._address(key))
            else:
                content = pickle.dumps((key, value), protocol=pickle.HIGHEST_PROTOCOL)
                batch.put(self._address(key), content)
        self._store.write(batch)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Everything, by key group."""
        return (entry(value) for _, value in self._store.view().items(self._prefix))

    def agenda(self, grain: int) -> Agenda:
        """An agenda on disk."""
        return RocksAgenda(
            self.descriptor.keys, replace(self._place, prefix=_AGENDA + self._prefix), grain
        )

    def load(self, table: pl.DataFrame) -> None:
        """Add rows of a canonical table, or of a part of one."""
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

    def _address(self, key: Key) -> bytes:
        return self._prefix + of_key(key, temporal=self._temporal)

    def freeze(self) -> FrozenState:
        """A view of the database."""
        view = self._store.view()
        return FrozenRocksValues(self.descriptor, view, self._prefix, self._part_bytes)


class FrozenRocksValues(PartedState):
    """One state as it was at a barrier."""

    def __init__(
        self, descriptor: StateDescriptor, view: View, prefix: bytes, part_bytes: int
    ) -> None:
        self.descriptor = descriptor
        self._view = view
        self._prefix = prefix
        self._part_bytes = part_bytes
        self._read_bytes = 0

    def table(self) -> pl.DataFrame:
        """The canonical table, whole."""
        return in_order(self.descriptor, super().table())

    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table, some key groups at a time; or a part of one that is too large."""
        held: list[tuple[Key, Any]] = []
        size_bytes, last = 0, 0
        # How much was read is how much comes out.
        raw = self._counted(self._view.items(self._prefix))
        for address, key, item in self._items(raw):
            group = group_of(address, len(self._prefix))
            size_bytes = self._read_bytes * _GROWTH
            if size_bytes > self._part_bytes and (
                group != last or size_bytes > 2 * self._part_bytes
            ):
                yield table_of(self.descriptor, held)
                held, self._read_bytes = [], 0
            held.append((key, item))
            last = group
        yield table_of(self.descriptor, held)

    def _items(self, stored: Iterable[tuple[bytes, bytes]]) -> Iterator[Stored]:
        """What is stored, in order of addresses."""
        return ((address, *entry(raw)) for address, raw in stored)

    def _counted(self, stored: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for address, raw in stored:
            self._read_bytes += len(raw)
            yield address, raw


def entry(raw: bytes) -> tuple[Any, Any]:
    """What was stored: a key, and what it has."""
    found: tuple[Any, Any] = pickle.loads(raw)  # noqa: S301  we wrote it
    return found
