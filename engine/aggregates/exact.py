"""Exact sums of floats: the same bits for any order, batch size and parallelism.

    float = special | l3·2^24 + l2·2^-16 + l1·2^-56 + l0·2^-96 + rest
    sum of floats = sum of each part, carries moved up; rounded once, at the end

Shapes   four Int64 limbs; `special` Float64 adds up what is not finite; `rest` Binary is null, or a
         big integer (little-endian, two's complement, unit 2^-1074) of what the limbs cannot hold:
         values of 2^64 and more, and bits below 2^-96.
Order    after `carry` the lower limbs lie in [0, 2^40), so equal sums have equal limbs.
Cost     a dozen vector operations per batch. Values with a rest, and results that are not a short
         fraction, take about half a microsecond each in Python integers.
Source   Kulisch, Computer Arithmetic and Validity, 2008 (the long accumulator).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

LIMB_BITS = 40
_RADIX = 2**LIMB_BITS
_UNITS = (-96, -56, -16, 24)
"""Exponents of the limbs' units, from low to high."""
_LIMIT = 2.0**64
_SPILL = 2**55
"""A top limb beyond this goes to the rest: the sum of 2^7 such limbs still fits into 63 bits."""
_DEPTH = 1074
"""Doubles are whole multiples of 2^-1074."""
_SHORT = 2**12
"""Top limbs below this, with empty low limbs, make a result of at most 53 bits."""

_Floats = npt.NDArray[np.float64]


def split(values: pl.Series) -> list[pl.Series]:
    """Cut floats into limbs, special and rest; a null is zero."""
    numbers = values.fill_null(0.0).to_numpy()
    usable = np.isfinite(numbers) & (np.abs(numbers) < _LIMIT)
    left = numbers if usable.all() else np.where(usable, numbers, 0.0)
    limbs: list[pl.Series] = []
    for unit in reversed(_UNITS):
        # Each step is exact: powers of two scale, and the difference is the number's own low bits.
        digits = np.trunc(left * 2.0**-unit)
        left = left - digits * 2.0**unit
        limbs.append(pl.Series(digits.astype(np.int64)))
    special = pl.Series(np.where(np.isfinite(numbers), 0.0, numbers))
    return [*reversed(limbs), special, _rest(numbers, left, usable)]


def _rest(numbers: _Floats, left: _Floats, usable: npt.NDArray[np.bool_]) -> pl.Series:
    outside = np.where(usable, left, np.where(np.isfinite(numbers), numbers, 0.0))
    rests: list[bytes | None] = [None] * len(outside)
    for index in np.flatnonzero(outside).tolist():
        rests[index] = _encode(_whole(float(outside[index])))
    return pl.Series(rests, dtype=pl.Binary)


def carry(limbs: Sequence[pl.Series], rest: pl.Series) -> list[pl.Series]:
    """Bring summed limbs back into their range; returns the limbs and the rest."""
    parts = [limb.to_numpy() for limb in limbs]
    for index in range(len(parts) - 1):
        overflow = parts[index] >> LIMB_BITS
        parts[index] = parts[index] & (_RADIX - 1)
        parts[index + 1] = parts[index + 1] + overflow
    top = parts[-1]
    if np.abs(top).max(initial=0) >= _SPILL:
        rest, parts[-1] = _spilled(top, rest)
    return [*(pl.Series(part, dtype=pl.Int64) for part in parts), rest]


def _spilled(
    top: npt.NDArray[np.int64], rest: pl.Series
) -> tuple[pl.Series, npt.NDArray[np.int64]]:
    rests, kept = rest.to_list(), top.copy()
    for index in np.flatnonzero(np.abs(top) >= _SPILL).tolist():
        high = int(top[index]) << (_DEPTH + _UNITS[-1])
        rests[index] = _encode(high + _decode(rests[index]))
        kept[index] = 0
    return pl.Series(rests, dtype=pl.Binary), kept


def add_rests(lists: pl.Series) -> pl.Series:
    """Add the rests of each group: a column of lists becomes a column of single rests."""
    if not lists.list.len().sum():
        return pl.Series([None] * len(lists), dtype=pl.Binary)
    totals = [sum(map(_decode, rests)) for rests in lists.to_list()]
    return pl.Series([_encode(total) if total else None for total in totals], dtype=pl.Binary)


def result(limbs: Sequence[pl.Series], special: pl.Series, rest: pl.Series) -> pl.Series:
    """The sums as floats, correctly rounded; `limbs` have been carried."""
    low, next_low, middle, top = (limb.to_numpy() for limb in limbs)
    short = (low == 0) & (next_low == 0) & (np.abs(top) < _SHORT) & rest.is_null().to_numpy()
    near = np.where(short, top, 0) * _RADIX + middle
    sums = np.ldexp(near.astype(np.float64), _UNITS[2])
    long = np.flatnonzero(~short).tolist()
    if long:
        rows = zip(*(limb.gather(long).to_list() for limb in (*limbs, rest)), strict=True)
        # One row of a closed window at a time: only big integers round the whole sum correctly.
        sums[long] = [_rounded(row) for row in rows]
    extra = special.to_numpy()
    return pl.Series(np.where(extra == 0.0, sums, extra))


def _rounded(row: tuple[int, int, int, int, bytes | None]) -> float:
    low, next_low, middle, top, rest = row
    whole: int = (((top << LIMB_BITS) + middle << LIMB_BITS) + next_low << LIMB_BITS) + low
    if rest is None:
        return whole / (1 << 96)
    total = (whole << _DEPTH - 96) + _decode(rest)
    try:
        return total / (1 << _DEPTH)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _whole(value: float) -> int:
    """A finite float in units of 2^-1074."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * ((1 << _DEPTH) // denominator)


def _encode(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)


def _decode(raw: bytes | None) -> int:
    return int.from_bytes(raw, "little", signed=True) if raw else 0


def exact_sum(values: Iterable[float]) -> float:
    """The correctly rounded sum of some floats; what a window's `agg.sum` gives.

    >>> exact_sum([1e100, 0.1, -1e100, 0.2]), exact_sum([0.1] * 10)
    (0.30000000000000004, 1.0)
    """
    *limbs, special, rest = split(pl.Series(list(values), dtype=pl.Float64))
    totals = [pl.Series([limb.sum()], dtype=pl.Int64) for limb in limbs]
    rest_lists = pl.Series([rest.drop_nulls().to_list()], dtype=pl.List(pl.Binary))
    *carried, total_rest = carry(totals, add_rests(rest_lists))
    outcome: float = result(carried, pl.Series([special.sum()]), total_rest)[0]
    return outcome
