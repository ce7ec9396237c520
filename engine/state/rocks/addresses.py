"""Addresses: keys and times as bytes.

    of_key       equal keys as equal bytes, in no order that matters: for values
    ordered_key  bytes in the order of the keys themselves: for timers, of which the first is wanted
    ordered      a time or number, in order

Shapes   a key is its key group and one Python object per key column.
"""

from __future__ import annotations

import marshal
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from engine.errors import InternalError
from engine.state.handles import Key

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  of times without a zone
_MICROSECOND = timedelta(microseconds=1)
# Version 2 writes equal values as equal bytes; later ones depend on who else refers to them.
_MARSHAL = 2
_HALF = 2**63


def of_key(key: Key, *, temporal: bool) -> bytes:
    """A key, by key group. `temporal`: whether a column holds times."""
    columns = tuple(map(_plain, key[1:])) if temporal else key[1:]
    address: bytes = key[0].to_bytes(2, "big") + marshal.dumps(columns, _MARSHAL)
    return address


def group_of(address: bytes, at: int) -> int:
    """The key group of a key whose bytes begin somewhere in an address."""
    return int.from_bytes(address[at : at + 2], "big")


def ordered(number: int) -> bytes:
    """An Int64 in eight bytes.

    >>> ordered(-5) < ordered(3) < ordered(2**62)
    True
    """
    return (number + _HALF).to_bytes(8, "big")


def ordered_key(key: Key) -> bytes:
    """A key in bytes that compare as keys do.

    >>> ordered_key((1, "a", 2)) < ordered_key((1, "a", 10)) < ordered_key((1, "ab", 1))
    True
    """
    address: bytes = key[0].to_bytes(2, "big") + b"".join(map(ordered_column, key[1:]))
    return address


def ordered_column(value: Any) -> bytes:
    """A value of a key or a map key in bytes that compare as such values do."""
    match _plain(value):
        case bool(truth):
            return b"\1" if truth else b"\0"
        case int(number):
            # Wide enough for Int64 and UInt64 alike.
            return (number + _HALF).to_bytes(9, "big")
        case str(text):
            return _ended(text.encode())
        case bytes(raw):
            return _ended(raw)
    msg = f"key of a timer cannot be put in order: got {value!r}"
    raise InternalError(msg)


def _ended(raw: bytes) -> bytes:
    """Text whose end comes before any text that goes on."""
    return raw.replace(b"\0", b"\0\xff") + b"\0\0"


def _plain(value: Any) -> Any:
    """A time as something that can be marshalled."""
    match value:
        case datetime(tzinfo=None):
            return (value - _EPOCH) // _MICROSECOND
        case datetime():
            return (value - _EPOCH.replace(tzinfo=UTC)) // _MICROSECOND
        case date():
            return value.toordinal()
        case timedelta():
            return value // _MICROSECOND
        case time():
            return value.isoformat("microseconds")
    return value
