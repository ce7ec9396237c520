"""Blocks on disk: columns of numbers, packed so that what hardly changes hardly takes room.

    version · count · kinds ── zlib of: differences of each column, their bytes put in planes

    kind b   booleans and whole numbers, as differences of the differences from one to the next
    kind m   whole numbers that are millions, such as times of whole ms, as their millionth part
    kind 0…4 floats that are decimals of so many digits: the whole numbers that they are a tenth,
             a hundredth … of
    kind x   other floats, as the bits in which each differs from the one before

Guarantee  exact: what is read are the bits that were written.
Source   Gorilla (Pelkonen et al., VLDB 2015) for the differences; Blosc for the planes of bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 1
_HEAD = struct.Struct("<BIB")
MILLION = 1_000_000
_DIGITS = 4
_EXACT = float(2**53)
"""Beyond it not every whole number is a float."""
_LEVEL = 4
"""Of zlib: twice as fast as the default, and a tenth larger."""

Column = NDArray[Any]


def packed(columns: Sequence[Column]) -> bytes:
    """Write columns of equal length."""
    kinds, planes = [], []
    for column in columns:
        kind, words = _words(column)
        kinds.append(ord(kind))
        planes.append(words.view(np.uint8).reshape(-1, 8).T.tobytes())
    head = _HEAD.pack(VERSION, len(columns[0]), len(columns)) + bytes(kinds)
    return head + zlib.compress(b"".join(planes), _LEVEL)


def unpacked(block: bytes) -> list[Column]:
    """Read what `packed` wrote. Raises ValueError."""
    version, count, width = _HEAD.unpack_from(block)
    if version != VERSION:
        msg = f"block has format {version}, this store reads {VERSION}"
        raise ValueError(msg)
    kinds = block[_HEAD.size : _HEAD.size + width].decode()
    planes = np.frombuffer(zlib.decompress(block[_HEAD.size + width :]), np.uint8)
    bytes_ = planes.reshape(width, 8, count)
    return [_column(kind, bytes_[at]) for at, kind in enumerate(kinds)]


def _words(column: Column) -> tuple[str, NDArray[np.uint64]]:
    """Eight bytes for each number, small where it is like the one before."""
    if column.dtype != np.float64:
        whole = column.astype(np.int64)
        if (whole % MILLION == 0).all():
            return "m", _differences(whole // MILLION)
        return "b", _differences(whole)
    for digits in range(_DIGITS + 1):
        scaled = np.rint(column * 10.0**digits)
        if not np.abs(scaled).max(initial=0) < _EXACT:
            break
        whole = scaled.astype(np.int64)
        # By their bits: there is a zero with a sign, and not a number.
        if ((whole / 10.0**digits).view(np.int64) == column.view(np.int64)).all():
            return str(digits), _differences(whole)
    bits = column.view(np.uint64)
    return "x", np.append(bits[:1], bits[1:] ^ bits[:-1])


def _differences(whole: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Differences of differences, with the sign in the lowest bit; overflow comes back around."""
    twice = np.diff(np.diff(whole, prepend=0), prepend=0)
    return ((twice << 1) ^ (twice >> 63)).view(np.uint64)


def _column(kind: str, planes: NDArray[np.uint8]) -> Column:
    words = np.ascontiguousarray(planes.T).view(np.uint64).reshape(-1)
    if kind == "x":
        return np.bitwise_xor.accumulate(words).view(np.float64)
    half = (words >> np.uint64(1)).view(np.int64)
    twice = half ^ -(words & np.uint64(1)).view(np.int64)
    whole: NDArray[np.int64] = np.cumsum(np.cumsum(twice))
    match kind:
        case "b":
            return whole
        case "m":
            return whole * MILLION
        case _:
            return whole / 10.0 ** int(kind)
