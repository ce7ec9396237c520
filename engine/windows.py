"""Windows: which stretches of event time rows are gathered in.

Units    sizes and offsets are given as text, timedelta or microseconds; ends are microseconds UTC.
Shapes   a window covers [end - size, end). Its slice is the finest piece that aggregates are kept
         for; a tumbling window is one slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import numpy.typing as npt

from engine.durations import format_duration, parse_duration
from engine.elements import Micros
from engine.errors import GraphError


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Fixed, gap-free windows of `size`, aligned to 1970-01-01 UTC plus `offset`."""

    size: Micros
    offset: Micros

    def slice_ends(self, event_times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The ends of the slices that rows fall in."""
        since = event_times - np.int64(self.offset)
        return since // np.int64(self.size) * np.int64(self.size) + np.int64(
            self.size + self.offset
        )

    def __str__(self) -> str:
        offset = f", offset {format_duration(self.offset)}" if self.offset else ""
        return f"tumbling {format_duration(self.size)}{offset}"


def tumbling(size: str | timedelta | int, offset: str | timedelta | int = 0) -> Tumbling:
    """Fixed, gap-free windows.

    >>> str(tumbling("1d", offset="5h"))
    'tumbling 1d, offset 5h'
    """
    size_us = parse_duration(size, "window size")
    if size_us <= 0:
        msg = f"window size must be positive: got {size!r}; pass e.g. tumbling('5m')"
        raise GraphError(msg)
    offset_us = parse_duration(offset, "window offset")
    return Tumbling(size_us, Micros(offset_us % size_us))
