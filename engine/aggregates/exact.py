"""Exact sums of floats: the same bits for any order, batch size and parallelism.

    float = special | l3·2^24 + l2·2^-16 + l1·2^-56 + l0·2^-96 + rest
    sum of floats = sum of each part, carries moved up; rounded once, at the end

Shapes   four Int64 limbs; `special` Float64 adds up what is not finite; `rest` Binary is null, or a
         big integer (little-endian, two's complement, unit 2^-1074) of what the limbs cannot hold:
         values of 2^64 and more, and bits below 2^-96.
Order    after `carry` the lower limbs lie in [0, 2^40), so equal sums have equal limbs.
Cost     a dozen vector operations per batch; values with a rest take about a microsecond each in
         Python integers.
Source   Kulisch, Computer Arithmetic and Validity, 2008 (the long accumulator).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.kernels import active
from engine.kernels.rounding import DIGIT_BITS, Whole, carried

_RADIX = 2**DIGIT_BITS
_UNITS = (-96, -56, -16, 24)
"""Exponents of the limbs' units, from low to high."""
_LIMIT = 2.0**64
_SPILL = 2**55
"""A top limb beyond this goes to the rest: the sum of 2^7 such limbs still fits into 63 bits."""
DEPTH = 1074
"""Doubles are whole multiples of 2^-1074."""

_Floats = npt.NDArray[np.float64]


def split(values: pl.Series) -> list[pl.Series]:
    """Cut floats into limbs, special and rest; a null is zero."""
    numbers = (values.fill_null(0.0) if values.null_count() else values).to_numpy()
    usable = np.abs(numbers) < _LIMIT
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
    if not outside.any():
        return no_rests(len(outside))
    rests: list[bytes | None] = [None] * len(outside)
    for index in np.flatnonzero(outside).tolist():
        rests[index] = _encode(_whole(float(outside[index])))
    return pl.Series(rests, dtype=pl.Binary)


def no_rests(rows: int) -> pl.Series:
    """The rests of sums that have none."""
    return pl.Series([None], dtype=pl.Binary).new_from_index(0, rows)


def carry(limbs: Sequence[pl.Series], rest: pl.Series) -> list[pl.Series]:
    """Bring summed limbs back into their range; returns the limbs and the rest."""
    return spilled(carried([limb.to_numpy() for limb in limbs]), rest)


def spilled(parts: list[Whole], rest: pl.Series) -> list[pl.Series]:
    """Move what the top limb can hardly hold to the rest; returns the limbs and the rest."""
    top = parts[-1]
    if np.abs(top).max(initial=0) >= _SPILL:
        rest, parts[-1] = _with_rests(top, rest)
    return [*(pl.Series(part, dtype=pl.Int64) for part in parts), rest]


def _with_rests(top: Whole, rest: pl.Series) -> tuple[pl.Series, Whole]:
    rests, kept = rest.to_list(), top.copy()
    for index in np.flatnonzero(np.abs(top) >= _SPILL).tolist():
        high = int(top[index]) << (DEPTH + _UNITS[-1])
        rests[index] = _encode(high + _decode(rests[index]))
        kept[index] = 0
    return pl.Series(rests, dtype=pl.Binary), kept


def add_rests(lists: pl.Series) -> pl.Series:
    """Add the rests of each group: a column of lists becomes a column of single rests."""
    return _encoded(sum(map(_decode, rests)) for rests in lists.to_list())


def negated_rests(rest: pl.Series) -> pl.Series:
    """The same with the other sign."""
    if rest.null_count() == len(rest):
        return rest
    return _encoded(-_decode(one) for one in rest.to_list())


def result(limbs: Sequence[pl.Series], special: pl.Series, rest: pl.Series) -> pl.Series:
    """The sums as floats, correctly rounded; `limbs` have been carried."""
    digits = np.array([limb.to_numpy() for limb in limbs])
    plain = np.abs(digits[-1]) < _RADIX
    if rest.null_count() < len(rest):
        plain &= rest.is_null().to_numpy()
    sums = np.empty(len(rest))
    active().round_limbs(digits if plain.all() else np.where(plain, digits, 0), _UNITS[0], sums)
    odd = np.flatnonzero(~plain).tolist()
    if odd:
        rows = zip(*(column.gather(odd).to_list() for column in (*limbs, rest)), strict=True)
        # Rare rows, one at a time: only big integers hold what the limbs do not.
        sums[odd] = [_rounded(row) for row in rows]
    extra = special.to_numpy()
    return pl.Series(np.where(extra == 0.0, sums, extra) if extra.any() else sums)


def whole(limbs: Sequence[pl.Series], special: pl.Series, rest: pl.Series) -> list[int | None]:
    """The sums in units of 2^-1074, as big integers; None where they are not finite."""
    parts = zip(*(column.to_list() for column in (*limbs, rest)), strict=True)
    return [
        None if extra else _total(row) for row, extra in zip(parts, special.to_list(), strict=True)
    ]


def added(one: Sequence[pl.Series], other: Sequence[pl.Series]) -> list[pl.Series]:
    """Add sums that were split, and not yet carried, one by one."""
    *first, first_rest = one
    *second, second_rest = other
    pairs = [a + b for a, b in zip(first, second, strict=True)]
    if second_rest.null_count() == len(second_rest):
        return [*pairs, first_rest]
    both = zip(first_rest.to_list(), second_rest.to_list(), strict=True)
    return [*pairs, _encoded(_decode(a) + _decode(b) for a, b in both)]


def with_squares(rest: pl.Series, numbers: _Floats, at: Sequence[int]) -> pl.Series:
    """Set the rests at some places to the squares of finite floats, in big integers."""
    rests = rest.to_list()
    for index in at:
        rests[index] = _encode(_whole(float(numbers[index])) ** 2 >> DEPTH)
    return pl.Series(rests, dtype=pl.Binary)


def _rounded(row: tuple[int, int, int, int, bytes | None]) -> float:
    total = _total(row)
    try:
        return total / (1 << DEPTH)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _total(row: tuple[int, int, int, int, bytes | None]) -> int:
    low, next_low, middle, top, rest = row
    limbs: int = (((top << DIGIT_BITS) + middle << DIGIT_BITS) + next_low << DIGIT_BITS) + low
    return (limbs << DEPTH + _UNITS[0]) + _decode(rest)


def _whole(value: float) -> int:
    """A finite float in units of 2^-1074."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * ((1 << DEPTH) // denominator)


def _encoded(totals: Iterable[int]) -> pl.Series:
    """Rests, one per total; null for 0."""
    return pl.Series([_encode(total) if total else None for total in totals], dtype=pl.Binary)


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
