"""Entries: what a key has, as bytes. Rows of numbers, times and text are packed, the rest pickled.

    packed    a row of the canonical table
              │ number: is it there, number │ text: length or -1 │ … │ text │ text │ …
              └────────── the head: as wide in all entries ───────────┘
    pickled   (key, item): lists, maps, decimals

Cost     packing or unpacking a row takes about two microseconds; of many at once, by columns, a
         quarter of one: so are snapshots written, restored, and large batches read and written.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any

import numpy as np
import polars as pl

from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import Key
from engine.state.rocks.addresses import MANY
from engine.state.rocks.fixed import (
    Numbers,
    code_of,
    column_of,
    fixed_bytes,
    number_of,
    numbers_of,
    object_of,
)
from engine.state.schema import table_schema
from engine.state.tables import payload, table_of

_TEXT = (pl.String, pl.Binary)


class Entries(ABC):
    """How the entries of one state are written."""

    growth: int
    """A table takes about so many times the bytes of its entries while it is made."""

    @abstractmethod
    def dumped(self, key: Key, item: Any) -> bytes:
        """The entry of a key."""

    @abstractmethod
    def loaded(self, entry: bytes) -> tuple[Key, Any]:
        """The key of an entry, and what it has."""

    def loaded_many(self, entries: Sequence[bytes]) -> Iterable[tuple[Key, Any]]:
        """The keys of entries that come in order, and what they have."""
        return map(self.loaded, entries)

    @abstractmethod
    def table(self, entries: Sequence[bytes]) -> pl.DataFrame:
        """The canonical table of entries that come in order."""


def entries_of(descriptor: StateDescriptor) -> Entries:
    """The way that fits a state."""
    types = table_schema(descriptor).values()
    plain = all(dtype in _TEXT or code_of(dtype) is not None for dtype in types)
    if plain and descriptor.kind is StateKind.VALUE:
        return PackedEntries(descriptor)
    return PickledEntries(descriptor)


class PickledEntries(Entries):
    """Whatever a key may have."""

    growth = 8

    def __init__(self, descriptor: StateDescriptor) -> None:
        self._descriptor = descriptor

    def dumped(self, key: Key, item: Any) -> bytes:
        """Pickle both."""
        return pickled(key, item)

    def loaded(self, entry: bytes) -> tuple[Key, Any]:
        """Read what was pickled."""
        return unpickled(entry)

    def table(self, entries: Sequence[bytes]) -> pl.DataFrame:
        """Through Python objects."""
        return table_of(self._descriptor, map(self.loaded, entries))


class PackedEntries(Entries):
    """Rows of numbers, times and text."""

    growth = 2

    def __init__(self, descriptor: StateDescriptor) -> None:
        self._width = 1 + len(descriptor.keys)
        self._is_single = len(payload(descriptor)) == 1
        schema = table_schema(descriptor)
        self._columns = [_column(name, dtype) for name, dtype in schema.items()]
        heads = [head for column in self._columns for head in column.heads]
        self._head = np.dtype([(name, f"<{code}") for name, code in heads])
        self._struct = Struct("<" + "".join(code for _, code in heads))

    def dumped(self, key: Key, item: Any) -> bytes:
        """Pack one row."""
        row = (*key, item) if self._is_single else (*key, *item)
        head: list[Any] = []
        tail: list[bytes] = []
        for column, value in zip(self._columns, row, strict=True):
            column.pack(value, head, tail)
        return self._struct.pack(*head) + b"".join(tail)

    def loaded(self, entry: bytes) -> tuple[Key, Any]:
        """Unpack one row."""
        head = list(self._struct.unpack_from(entry))
        head.reverse()
        tail = memoryview(entry)[self._struct.size :]
        row = []
        for column in self._columns:
            value, tail = column.unpack(head, tail)
            row.append(value)
        item = row[-1] if self._is_single else tuple(row[self._width :])
        return tuple(row[: self._width]), item

    def loaded_many(self, entries: Sequence[bytes]) -> Iterable[tuple[Key, Any]]:
        """Unpack some one by one, many by columns."""
        if len(entries) < MANY:
            return super().loaded_many(entries)
        columns = [column.to_list() for column in self.table(entries).get_columns()]
        keys = zip(*columns[: self._width], strict=True)
        if self._is_single:
            return zip(keys, columns[-1], strict=True)
        return zip(keys, zip(*columns[self._width :], strict=True), strict=True)

    def table(self, entries: Sequence[bytes]) -> pl.DataFrame:
        """Unpack column by column."""
        raw = pl.Series("entry", entries, dtype=pl.Binary)
        heads = raw.bin.slice(0, self._head.itemsize).to_arrow().buffers()[2]
        head = np.frombuffer(heads, dtype=self._head, count=len(entries))
        at = np.full(len(entries), self._head.itemsize, dtype=np.int64)
        return pl.DataFrame([column.unpacked(head, raw, at) for column in self._columns])

    def of_rows(self, table: pl.DataFrame) -> pl.Series:
        """The entry of each row of a canonical table, as bytes."""
        head = np.zeros(table.height, dtype=self._head)
        for column in self._columns:
            column.fill(head, table)
        entry = pl.lit(fixed_bytes(head))
        for column in self._columns:
            if isinstance(column, _Text):
                entry = entry + pl.col(column.name).cast(pl.Binary).fill_null(b"")
        return table.select(entry.alias("entry")).to_series()


class _Number:
    """A column of numbers or times."""

    def __init__(self, name: str, dtype: pl.DataType, code: str) -> None:
        self.name = name
        self._dtype = dtype
        self._is_there = f"{name}?"
        self.heads = [(self._is_there, "?"), (name, code)]
        self._number = number_of(dtype)
        self._object = object_of(dtype)

    def pack(self, value: Any, head: list[Any], tail: list[bytes]) -> None:
        if value is None:
            head += (False, 0)
        else:
            head += (True, self._number(value))

    def unpack(self, head: list[Any], tail: memoryview) -> tuple[Any, memoryview]:
        is_there, number = head.pop(), head.pop()
        return (self._object(number) if is_there else None), tail

    def fill(self, head: Numbers, table: pl.DataFrame) -> None:
        column = table.get_column(self.name)
        head[self._is_there] = column.is_not_null().to_numpy()
        head[self.name] = numbers_of(column)

    def unpacked(self, head: Numbers, raw: pl.Series, at: Numbers) -> pl.Series:
        column = column_of(np.ascontiguousarray(head[self.name]), self._dtype).alias(self.name)
        is_there = head[self._is_there]
        if is_there.all():
            return column
        return column.set(pl.Series(~is_there), None)


class _Text:
    """A column of text or bytes."""

    def __init__(self, name: str, dtype: pl.DataType) -> None:
        self.name = name
        self._dtype = dtype
        self._is_bytes = dtype == pl.Binary
        self.heads = [(name, "i")]

    def pack(self, value: Any, head: list[Any], tail: list[bytes]) -> None:
        if value is None:
            head.append(-1)
            return
        raw = value if self._is_bytes else value.encode()
        head.append(len(raw))
        tail.append(raw)

    def unpack(self, head: list[Any], tail: memoryview) -> tuple[Any, memoryview]:
        length = head.pop()
        if length < 0:
            return None, tail
        raw = tail[:length]
        return (bytes(raw) if self._is_bytes else str(raw, "utf-8")), tail[length:]

    def fill(self, head: Numbers, table: pl.DataFrame) -> None:
        lengths = table.get_column(self.name).cast(pl.Binary).bin.size()
        head[self.name] = lengths.cast(pl.Int32).fill_null(-1).to_numpy()

    def unpacked(self, head: Numbers, raw: pl.Series, at: Numbers) -> pl.Series:
        """`at`: where the text of each entry begins; is moved on behind it."""
        lengths = head[self.name]
        begin, length = pl.lit(pl.Series(at)), pl.lit(pl.Series(np.maximum(lengths, 0)))
        text = pl.col(raw.name).bin.slice(begin, length).cast(self._dtype)
        if (lengths < 0).any():
            text = pl.when(pl.lit(pl.Series(lengths >= 0))).then(text)
        column = raw.to_frame().select(text.alias(self.name)).to_series()
        at += np.maximum(lengths, 0)
        return column


def pickled(at: Any, item: Any) -> bytes:
    """A key or map key, and what is there."""
    return pickle.dumps((at, item), pickle.HIGHEST_PROTOCOL)


def unpickled(entry: bytes) -> tuple[Any, Any]:
    """What `pickled` was given."""
    found: tuple[Any, Any] = pickle.loads(entry)  # noqa: S301  we wrote it
    return found


def _column(name: str, dtype: pl.DataType) -> _Number | _Text:
    code = code_of(dtype)
    return _Text(name, dtype) if code is None else _Number(name, dtype, code)
