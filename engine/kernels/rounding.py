"""Correct rounding of wide integers, many at once.

    digits of 40 bits --leading 62 bits, the rest as one sticky bit--> int64 --hardware--> float

Order    rounds half to even, as every float operation does, so a sum of one value is that value.
Source   the sticky bit is the classic way; Boldo and Melquiond, Emulation of FMA, 2008, prove it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]

DIGIT_BITS = 40
_MASK = 2**DIGIT_BITS - 1
KEPT_BITS = 62
"""More than the 53 bits of a double and a guard bit, less than the 63 of an int64."""


def carried(digits: Sequence[Whole]) -> list[Whole]:
    """Bring all digits but the last, from low to high, into [0, 2^40); the last takes the sign."""
    parts = list(digits)
    for index in range(len(parts) - 1):
        overflow = parts[index] >> DIGIT_BITS
        parts[index] = parts[index] & _MASK
        parts[index + 1] = parts[index + 1] + overflow
    return parts


def rounded(digits: Sequence[Whole], unit: int) -> npt.NDArray[np.float64]:
    """The nearest floats of carried digits, low to high, whose last is below 2^40.

    `unit`: exponent of the lowest digit's unit.
    """
    negative = digits[-1] < 0
    magnitude = carried([np.where(negative, -digit, digit) for digit in digits])
    count = len(magnitude)
    zeros = np.zeros_like(magnitude[0])
    table = np.stack([*reversed(magnitude), zeros, zeros, zeros])
    lead = np.argmax(table[:count] != 0, axis=0)
    first, second, third, fourth = (
        np.take_along_axis(table, (lead + step)[None], axis=0)[0] for step in range(4)
    )
    # How many bits to take from the digits after the first: 22 to 61.
    wanted = KEPT_BITS - np.frexp(first.astype(np.float64))[1].astype(np.int64)
    whole, left = _leading(second, third, wanted)
    sticky = (left != 0) | (fourth != 0)
    mantissa = (first << wanted) | whole | sticky
    exponent = unit + DIGIT_BITS * (count - 1 - lead) - wanted
    floats = np.ldexp(mantissa.astype(np.float64), exponent)
    signed: npt.NDArray[np.float64] = np.where(negative, -floats, floats)
    return signed


def _leading(second: Whole, third: Whole, wanted: Whole) -> tuple[Whole, Whole]:
    """The first `wanted` bits of two digits, and what is left of them."""
    short = wanted <= DIGIT_BITS
    cut = np.where(short, DIGIT_BITS - wanted, 2 * DIGIT_BITS - wanted)
    within = (np.int64(1) << cut) - 1
    whole = np.where(
        short, second >> cut, (second << np.where(short, 0, wanted - DIGIT_BITS)) | (third >> cut)
    )
    left = np.where(short, (second & within) | third, third & within)
    return whole, left
