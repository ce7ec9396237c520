"""Lookups of joins, compiled: one pass over a batch, without an object per row.

Cost     some nanoseconds a row. Compiled at the first call in a process, and cached on disk after
         the first one on a machine.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]


@numba.njit(nogil=True, cache=True)
def latest_rows(
    numbers: _Ints,
    times: _Ints,
    latest: _Ints,
    begins: _Ints,
    ends: _Ints,
    row_times: _Ints,
    ttl: int,
    found: npt.NDArray[np.uint32],
) -> None:
    """Find for each (number, time) the last row up to the time: among the rows [begin, end) of its
    number, else its latest before; 0 when there is none, or its `ttl` (0: none) is over.
    """
    for i in range(len(numbers)):
        number = numbers[i]
        if number < 0:
            continue
        begin, time = begins[number], times[i]
        at, end = begin, ends[number]
        while at < end:
            middle = (at + end) // 2
            if row_times[middle] <= time:
                at = middle + 1
            else:
                end = middle
        row = at - 1 if at > begin else latest[number]
        if ttl == 0 or row_times[row] > time - ttl:
            found[i] = row
