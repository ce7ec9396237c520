"""Addresses: keys and times as bytes, in the order of the keys and times themselves.

    key group (2 bytes), then each key column
        numbers, times    8 bytes, big end first
        text, bytes       as they are, and an end that comes before any text that goes on

Order    entries of a state lie on disk in the order of its canonical table: snapshots are read, and
         restored, from front to back.
Cost     a key takes about a microsecond; of a table, a fifth of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from engine.elements import KEY_GROUP
from engine.errors import InternalError
from engine.state.handles import Key
from engine.state.rocks.fixed import code_of, fixed_bytes, number_of, numbers_of

MANY = 500
"""So many keys are worth the millisecond that it takes to make columns of them."""

_HALF = 2**63
_END = b"\0\0"


class Addresses:
    """Where the keys of one state are."""

    def __init__(self, prefix: bytes, keys: Mapping[str, pl.DataType]) -> None:
        self._prefix = prefix
        self._names = list(keys)
        self._schema = {KEY_GROUP: pl.UInt16(), **keys}
        self._columns = [ordering(dtype) for dtype in keys.values()]

    def of(self, key: Key) -> bytes:
        """The address of one key."""
        address: bytes = self._prefix + key[0].to_bytes(2, "big")
        for column, value in zip(self._columns, key[1:], strict=True):
            address += column(value)
        return address

    def of_many(self, keys: Sequence[Key]) -> list[bytes]:
        """The address of each key."""
        if len(keys) < MANY:
            return list(map(self.of, keys))
        columns = zip(self._schema.items(), zip(*keys, strict=True), strict=True)
        table = pl.DataFrame([pl.Series(name, of, dtype=dtype) for (name, dtype), of in columns])
        return self.of_rows(table).to_list()

    def of_rows(self, table: pl.DataFrame) -> pl.Series:
        """The address of each row of a canonical table, as bytes; tables are in their order."""
        groups = fixed_bytes(table.get_column(KEY_GROUP).to_numpy().astype(">u2"))
        address = pl.lit(self._prefix) + pl.lit(groups)
        for name in self._names:
            address = address + pl.lit(_ordered_bytes(table.get_column(name)))
        return table.select(address.alias("address")).to_series()


def ordering(dtype: pl.DataType) -> Callable[[Any], bytes]:
    """How values of a key or a map key become bytes that compare as the values do.

    >>> text, number = ordering(pl.String()), ordering(pl.Int64())
    >>> text("a") < text("ab") < text("b"), number(-5) < number(3) < number(2**62)
    (True, True)
    """
    if dtype == pl.String:
        return lambda text: _ended(text.encode())
    if dtype == pl.Binary:
        return _ended
    if dtype.is_float() or code_of(dtype) is None:
        msg = f"keys of a state cannot be put in order: their type is {dtype}"
        raise InternalError(msg)
    number = number_of(dtype)
    half = 0 if dtype == pl.UInt64 else _HALF
    return lambda value: (number(value) + half).to_bytes(8, "big")


def ordered(number: int) -> bytes:
    """An Int64 in eight bytes.

    >>> ordered(-5) < ordered(3) < ordered(2**62)
    True
    """
    return (number + _HALF).to_bytes(8, "big")


def group_of(address: bytes, at: int) -> int:
    """The key group of a key whose bytes begin somewhere in an address."""
    return int.from_bytes(address[at : at + 2], "big")


def _ended(raw: bytes) -> bytes:
    return raw.replace(b"\0", b"\0\xff") + _END


def _ordered_bytes(column: pl.Series) -> pl.Series:
    """What `ordering` gives for each value of a column."""
    dtype = column.dtype
    if dtype in (pl.String, pl.Binary):
        raw = column.cast(pl.Binary)
        if raw.bin.contains(b"\0").any():
            return pl.Series([_ended(value) for value in raw], dtype=pl.Binary)
        return raw.to_frame().select(pl.first() + pl.lit(_END)).to_series()
    numbers = numbers_of(column)
    if dtype != pl.UInt64:
        numbers = numbers.astype(np.int64).view(np.uint64) ^ np.uint64(_HALF)
    return fixed_bytes(numbers.astype(">u8"))
