"""Addresses: keys and times as bytes, in the order of the keys and times themselves.

    key group (2 bytes), then each key column
        numbers, times    8 bytes, big end first
        text, bytes       as they are, and an end that comes before any text that goes on

Order    entries of a state lie on disk in the order of its canonical table: snapshots are read, and
         restored, from front to back.
Cost     a key takes about a microsecond; of a table, a fifth of that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from engine.elements import KEY_GROUP
from engine.errors import InternalError
from engine.state.handles import Key
from engine.state.rocks.fixed import code_of, fixed_bytes, number_of, numbers_of, object_of

MANY = 500
"""So many keys are worth the millisecond that it takes to make columns of them."""

_HALF = 2**63
_NUL, _ESCAPED, _END = b"\0", b"\0\xff", b"\0\0"


class Addresses:
    """Where the keys of one state are."""

    def __init__(self, prefix: bytes, keys: Mapping[str, pl.DataType]) -> None:
        self._prefix = prefix
        self._schema = {KEY_GROUP: pl.UInt16(), **keys}
        self._columns = {name: ordering(dtype) for name, dtype in keys.items()}

    def of(self, key: Key) -> bytes:
        """The address of one key."""
        address: bytes = self._prefix + key[0].to_bytes(2, "big")
        for column, value in zip(self._columns.values(), key[1:], strict=True):
            address += column.raw(value)
        return address

    def of_many(self, keys: Sequence[Key]) -> list[bytes]:
        """The address of each key."""
        if len(keys) < MANY:
            return list(map(self.of, keys))
        columns = zip(self._schema.items(), zip(*keys, strict=True), strict=True)
        table = pl.DataFrame([pl.Series(name, of, dtype=dtype) for (name, dtype), of in columns])
        return self.of_rows(table).to_list()

    def of_rows(self, table: pl.DataFrame) -> pl.Series:
        """The address of each row of a canonical table, as bytes."""
        groups = fixed_bytes(table.get_column(KEY_GROUP).to_numpy().astype(">u2"))
        address = pl.lit(self._prefix) + pl.lit(groups)
        for name, column in self._columns.items():
            address = address + pl.lit(column.raw_column(table.get_column(name)))
        return table.select(address.alias("address")).to_series()

    def key_at(self, address: bytes) -> Key:
        """The key that has an address."""
        return self.key_in(address)[0]

    def key_in(self, address: bytes) -> tuple[Key, int]:
        """The key that an address begins with, and where it ends."""
        at = len(self._prefix)
        key: list[Any] = [group_of(address, at)]
        at += 2
        for column in self._columns.values():
            value, at = column.value_at(address, at)
            key.append(value)
        return tuple(key), at


class Ordering(ABC):
    """How values of a key or a map key become bytes that compare as the values do."""

    @abstractmethod
    def raw(self, value: Any) -> bytes:
        """The bytes of a value."""

    @abstractmethod
    def raw_column(self, column: pl.Series) -> pl.Series:
        """The bytes of each value of a column."""

    @abstractmethod
    def value_at(self, address: bytes, at: int) -> tuple[Any, int]:
        """The value whose bytes begin somewhere, and where they end."""


def ordering(dtype: pl.DataType) -> Ordering:
    """The way that fits a type.

    >>> text, number = ordering(pl.String()), ordering(pl.Int64())
    >>> text.raw("a") < text.raw("ab") < text.raw("b")
    True
    >>> number.raw(-5) < number.raw(3) < number.raw(2**62)
    True
    """
    if dtype in (pl.String, pl.Binary):
        return _Texts(dtype)
    if dtype.is_float() or code_of(dtype) is None:
        msg = f"keys of a state cannot be put in order: their type is {dtype}"
        raise InternalError(msg)
    return _Numbers(dtype)


class _Numbers(Ordering):
    def __init__(self, dtype: pl.DataType) -> None:
        self._number = number_of(dtype)
        self._object = object_of(dtype)
        self._half = 0 if dtype == pl.UInt64 else _HALF

    def raw(self, value: Any) -> bytes:
        raw: bytes = (self._number(value) + self._half).to_bytes(8, "big")
        return raw

    def raw_column(self, column: pl.Series) -> pl.Series:
        numbers = numbers_of(column)
        if self._half:
            numbers = numbers.astype(np.int64).view(np.uint64) ^ np.uint64(_HALF)
        return fixed_bytes(numbers.astype(">u8"))

    def value_at(self, address: bytes, at: int) -> tuple[Any, int]:
        number = int.from_bytes(address[at : at + 8], "big") - self._half
        return self._object(number), at + 8


class _Texts(Ordering):
    def __init__(self, dtype: pl.DataType) -> None:
        self._is_bytes = dtype == pl.Binary

    def raw(self, value: Any) -> bytes:
        raw: bytes = value if self._is_bytes else value.encode()
        return raw.replace(_NUL, _ESCAPED) + _END

    def raw_column(self, column: pl.Series) -> pl.Series:
        raw = column.cast(pl.Binary)
        if raw.bin.contains(_NUL).any():
            return pl.Series(list(map(self.raw, column)), dtype=pl.Binary)
        return raw.to_frame().select(pl.first() + pl.lit(_END)).to_series()

    def value_at(self, address: bytes, at: int) -> tuple[Any, int]:
        # No text has two zeros in a row: each is followed by 255.
        end = address.index(_END, at)
        raw = address[at:end].replace(_ESCAPED, _NUL)
        return (raw if self._is_bytes else raw.decode()), end + len(_END)


def ordered(number: int) -> bytes:
    """An Int64 in eight bytes.

    >>> ordered(-5) < ordered(3) < ordered(2**62)
    True
    """
    return (number + _HALF).to_bytes(8, "big")


def group_of(address: bytes, at: int) -> int:
    """The key group of a key whose bytes begin somewhere in an address."""
    return int.from_bytes(address[at : at + 2], "big")
