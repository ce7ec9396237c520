"""What has changed in a state on disk since an earlier checkpoint, until it is written.

    entries, as written ──▶ Written, in memory ──▶ ChangedEntries ──▶ rows, and what is gone

Cost     what is noted is in memory, so there is a bound: beyond it the next checkpoint is whole. It
         is not read again: a seek among the files of millions of keys takes some 30 µs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import polars as pl

from engine.elements import KEY_GROUP
from engine.state.changes import NOTED_BYTES, Changes
from engine.state.contract import FrozenChanges, Increment, StateDescriptor
from engine.state.rocks.parts import in_parts

_UNKNOWN: Any = object()


@dataclass(slots=True)
class Written:
    """Entries as they were written last; None for one that has no rows any more."""

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

    def forget(self) -> None:
        """More has changed than is known: the next checkpoint is whole."""
        self._forget()

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


class ChangedEntries:
    """The entries that were written since a checkpoint, put together when they are written."""

    def __init__(
        self,
        noted: Iterable[Written],
        table: Callable[[Sequence[tuple[bytes, bytes]]], pl.DataFrame],
        removed: Callable[[Iterable[bytes]], pl.DataFrame],
        part_bytes: int,
    ) -> None:
        """`table`: of entries, in order. `removed`: of the addresses of those that are gone."""
        self._noted = noted
        self._table = table
        self._removed = removed
        self._part_bytes = part_bytes

    def frozen(
        self, descriptor: StateDescriptor, increment: Increment, by: Sequence[str]
    ) -> FrozenChanges:
        """What a checkpoint writes; `by`: the columns that tell entries apart."""
        return FrozenChanges(
            descriptor,
            since=increment.base,
            by=(KEY_GROUP, *by),
            rows=self._rows,
            removed=lambda: [self._removed(self._gone)],
        )

    def _rows(self) -> Iterator[pl.DataFrame]:
        entries = ((address, entry) for address, entry in self._latest if entry is not None)
        parts = in_parts(entries, lambda each: len(each[1]), self._part_bytes)
        return map(self._table, parts)

    @property
    def _gone(self) -> Iterator[bytes]:
        return (address for address, entry in self._latest if entry is None)

    @cached_property
    def _latest(self) -> list[tuple[bytes, bytes | None]]:
        latest: dict[bytes, bytes | None] = {}
        for written in self._noted:
            latest.update(written.entries)
        return sorted(latest.items())


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
