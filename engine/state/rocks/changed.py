"""What has changed in a state on disk since an earlier checkpoint, until it is written.

    written entries  ──▶ Written, in memory ──────────┐
    addresses of maps ──▶ a set ──read from a view──▶ ChangedKeys ──▶ rows, and keys that are gone

Cost     what is noted is in memory, so there is a bound: beyond it the next checkpoint is whole. It
         is not read again, but for maps: a seek among the files of millions of keys takes 30 µs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import polars as pl

from engine.elements import KEY_GROUP
from engine.state.changes import NOTED_BYTES, Changes
from engine.state.contract import FrozenChanges, Increment, StateDescriptor
from engine.state.rocks.addresses import Addresses
from engine.state.tables import key_table

_UNKNOWN: Any = object()

Read = Callable[[], tuple[Collection[bytes], Iterator[pl.DataFrame]]]
"""Addresses of keys that were written, and their rows: parts of the canonical table."""


@dataclass(slots=True)
class ChangedKeys:
    """The keys of a state that were written since a checkpoint."""

    descriptor: StateDescriptor
    addresses: Addresses
    read: Read
    """Called on the thread of the snapshot's writer, once."""
    _without: set[bytes] = field(default_factory=set)
    """Keys of which no row was found."""

    def frozen(self, increment: Increment) -> FrozenChanges:
        """What a checkpoint writes."""
        return FrozenChanges(
            self.descriptor,
            since=increment.base,
            by=(KEY_GROUP, *self.descriptor.keys),
            rows=self._rows,
            removed=self._removed,
        )

    def _rows(self) -> Iterator[pl.DataFrame]:
        noted, parts = self.read()
        self._without = set(noted)
        for part in parts:
            self._without.difference_update(self.addresses.of_rows(part).to_list())
            yield part

    def _removed(self) -> Iterable[pl.DataFrame]:
        return [key_table(self.descriptor, map(self.addresses.key_at, self._without))]


@dataclass(slots=True)
class Written:
    """Entries as they were written last; None for one that was removed."""

    entries: dict[bytes, bytes | None] = field(default_factory=dict)
    size_bytes: int = 0

    def write(self, address: bytes, entry: bytes | None) -> None:
        """An entry is another now."""
        before = self.entries.get(address, _UNKNOWN)
        if before is _UNKNOWN:
            self.size_bytes += NOTED_BYTES + len(address)
        else:
            self.size_bytes -= len(before or b"")
        self.size_bytes += len(entry or b"")
        self.entries[address] = entry


class WrittenChanges(Changes[tuple[Written, ...]]):
    """Which entries were written since a checkpoint, and as what."""

    def note(self, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """These were written."""
        if self.tracks:
            [written] = self._open
            for address, entry in entries:
                written.write(address, entry)
            self._check()

    def _none(self) -> tuple[Written, ...]:
        return (Written(),)

    def _size(self, noted: tuple[Written, ...]) -> int:
        return sum(len(written.entries) for written in noted)

    def _bytes(self, noted: tuple[Written, ...]) -> int:
        return sum(written.size_bytes for written in noted)

    def _union(self, noted: Sequence[tuple[Written, ...]]) -> tuple[Written, ...]:
        # References: to put them together is left to the thread that writes them.
        return tuple(chain.from_iterable(noted))


@dataclass(slots=True)
class RowCount:
    """How many rows a state has, roughly: all that were written, or a count of a whole table and
    what was written since.
    """

    written: int = 0
    _latest: Counted | None = None

    @property
    def rows(self) -> int:
        """As far as is known; more where a key was written again."""
        latest = self._latest
        if latest is None or latest.rows is None:
            return self.written
        return latest.rows + self.written - latest.written

    def counting(self) -> Counted:
        """What tells how many rows there are now, when it has seen them all."""
        self._latest = Counted(self.written)
        return self._latest


@dataclass(slots=True)
class Counted:
    """A whole table, which another thread counts as it is written."""

    written: int
    """What had been written before."""
    rows: int | None = None

    def through(self, parts: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The same parts, counted."""
        rows = 0
        for part in parts:
            rows += part.height
            yield part
        self.rows = rows
