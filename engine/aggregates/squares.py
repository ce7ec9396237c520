"""Squares of floats, exactly: the sum of two floats each.

    x·x = high + low        high is the product as it is rounded, low what that leaves

Units    squares of values from 2^-20 up are cut at 2^-96, about 1e-29.
Source   Dekker, A floating-point technique for extending the available precision, 1971.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

_SPLITTER = 2.0**27 + 1
SMALLEST, LARGEST = 2.0**-20, 2.0**500
"""Between these the product is exact in two floats, and its parts are whole multiples of 2^-96."""
_CUT = 2.0**96


def parts(numbers: _Floats) -> tuple[_Floats, _Floats]:
    """High and low part of the squares of numbers that are 0, or from `SMALLEST` to `LARGEST`.

    >>> high, low = parts(np.array([0.1]))
    >>> high[0] == 0.1 * 0.1, low[0] != 0
    (np.True_, np.True_)
    """
    high = numbers * numbers
    head = numbers * _SPLITTER
    head = head - (head - numbers)
    tail = numbers - head
    low = ((head * head - high) + 2 * head * tail) + tail * tail
    # Beyond the cut every value would need a big integer, for nothing that anyone can see.
    small = high < 2.0**64
    return high, np.where(small, np.trunc(np.where(small, low, 0.0) * _CUT) / _CUT, low)
