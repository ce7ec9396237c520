"""Windows: which stretches of event time rows are gathered in.

    tumbling     [0, 5) [5, 10) [10, 15)
    sliding      [0, 10) [5, 15) [10, 20)      rows are kept once, per slice; windows share slices
    cumulative   [0, 5) [0, 10) [0, 15) | [15, 20) [15, 30) …
    session      as long as rows of the key come less than a gap apart
    global       all rows of the key, until a trigger says so

Units    sizes and offsets are given as text, timedelta or microseconds; ends are microseconds UTC.
Shapes   a window covers [start, end). Its slices are the finest pieces that aggregates are kept
         for: no window begins or ends inside of one. A tumbling window is one slice.
Errors   GraphError when sizes do not fit together.
Source   Krishnamurthy et al., On-the-Fly Sharing for Streamed Aggregation, SIGMOD 2006 (slices in
         pairs, when a slide does not divide the size); Flink's names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from engine.durations import Duration, format_duration, parse_duration, positive_duration
from engine.elements import Micros
from engine.errors import GraphError

Times = npt.NDArray[np.int64]
_Time = TypeVar("_Time", int, Times)


class SlicedWindows(ABC):
    """Windows that are made of slices: which slices there are, and which windows hold each."""

    @property
    @abstractmethod
    def step(self) -> Micros:
        """How far the ends of windows lie apart."""

    @property
    @abstractmethod
    def anchor(self) -> Micros:
        """The end of some window."""

    @property
    @abstractmethod
    def grid(self) -> tuple[int, int, int]:
        """Where slices end: at each multiple of a step after an offset, and a part of a step later,
        unless that is 0.
        """

    @abstractmethod
    def last_ends(self, slice_ends: _Time) -> _Time:
        """The ends of the last windows that hold slices."""

    @abstractmethod
    def start(self, end: int) -> int:
        """Where the window with this end begins."""

    def slice_ends(self, event_times: Times) -> Times:
        """The ends of the slices that rows fall in."""
        step, offset, part = self.grid
        starts = _floor(event_times, step, offset)
        if not part:
            return starts + np.int64(step)
        first = event_times - starts < part
        return starts + np.where(first, np.int64(part), np.int64(step))

    def first_ends(self, slice_ends: _Time) -> _Time:
        """The ends of the first windows that hold slices; then one each `step`."""
        return slice_ends + (self.anchor - slice_ends) % self.step


@dataclass(frozen=True, slots=True)
class Tumbling(SlicedWindows):
    """Fixed, gap-free windows of `size`, aligned to 1970-01-01 UTC plus `offset`."""

    size: Micros
    offset: Micros

    @property
    def step(self) -> Micros:
        """How far the ends of windows lie apart."""
        return self.size

    @property
    def anchor(self) -> Micros:
        """The end of some window."""
        return self.offset

    @property
    def grid(self) -> tuple[int, int, int]:
        """Where slices end."""
        return (self.size, self.offset, 0)

    def last_ends(self, slice_ends: _Time) -> _Time:
        """A slice is a window."""
        return slice_ends

    def start(self, end: int) -> int:
        """Where the window with this end begins."""
        return end - self.size

    def __str__(self) -> str:
        return f"tumbling {format_duration(self.size)}{_offset(self.offset)}"


@dataclass(frozen=True, slots=True)
class Sliding(SlicedWindows):
    """Windows of `size`, one each `slide`, aligned to 1970-01-01 UTC plus `offset`."""

    size: Micros
    slide: Micros
    offset: Micros

    @property
    def step(self) -> Micros:
        """How far the ends of windows lie apart."""
        return self.slide

    @property
    def anchor(self) -> Micros:
        """The end of some window."""
        return Micros(self.offset + self.size)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Each slide is one slice; or two, when a window ends in the middle of it."""
        return (self.slide, self.offset, self.size % self.slide)

    def last_ends(self, slice_ends: _Time) -> _Time:
        """The window that begins last before the slice ends."""
        return _floor(slice_ends - 1, self.slide, self.offset) + self.size

    def start(self, end: int) -> int:
        """Where the window with this end begins."""
        return end - self.size

    def __str__(self) -> str:
        sizes = f"{format_duration(self.size)} by {format_duration(self.slide)}"
        return f"sliding {sizes}{_offset(self.offset)}"


@dataclass(frozen=True, slots=True)
class Cumulative(SlicedWindows):
    """Windows that grow by `step` up to `size`, and then begin anew."""

    size: Micros
    growth: Micros
    offset: Micros

    @property
    def step(self) -> Micros:
        """How far the ends of windows lie apart."""
        return self.growth

    @property
    def anchor(self) -> Micros:
        """The end of some window."""
        return self.offset

    @property
    def grid(self) -> tuple[int, int, int]:
        """Where slices end."""
        return (self.growth, self.offset, 0)

    def last_ends(self, slice_ends: _Time) -> _Time:
        """The window of full size."""
        return _floor(slice_ends - 1, self.size, self.offset) + self.size

    def start(self, end: int) -> int:
        """Where the window with this end begins."""
        return _floor(end - 1, self.size, self.offset)

    def __str__(self) -> str:
        sizes = f"{format_duration(self.size)} by {format_duration(self.growth)}"
        return f"cumulative {sizes}{_offset(self.offset)}"


@dataclass(frozen=True, slots=True)
class Session:
    """As long as rows of a key come less than `gap` apart; ends `gap` after the last one."""

    gap: Micros

    def slice_ends(self, event_times: Times) -> Times:
        """Slices of one gap: two rows of a key in one slice are always in one session."""
        return _floor(event_times, self.gap, 0) + np.int64(self.gap)

    def __str__(self) -> str:
        return f"session {format_duration(self.gap)}"


@dataclass(frozen=True, slots=True)
class Global:
    """All of time: one window per key, without an end."""

    def __str__(self) -> str:
        return "global"


def global_() -> Global:
    """One window per key that takes all rows; a trigger says when it gives results.

    >>> str(global_())
    'global'
    """
    return Global()


def session(gap: Duration) -> Session:
    """Windows that last as long as the rows of a key come less than `gap` apart.

    A session covers [first row, last row + gap). A row exactly `gap` after another begins a new
    one: the session before may have fired by then.

    >>> str(session("30m"))
    'session 30m'
    """
    return Session(positive_duration(gap, "session gap", "session('30m')"))


def tumbling(size: Duration, offset: Duration = 0) -> Tumbling:
    """Fixed, gap-free windows.

    >>> str(tumbling("1d", offset="5h"))
    'tumbling 1d, offset 5h'
    """
    size_us = positive_duration(size, "window size", "tumbling('5m')")
    return Tumbling(size_us, _within(offset, size_us))


def sliding(size: Duration, slide: Duration, offset: Duration = 0) -> Sliding:
    """Windows that overlap: one of `size` begins each `slide`.

    A row costs as much as in a tumbling window, however many windows it belongs to.

    >>> str(sliding("30m", "1s")), sliding(10, 4).slice_ends(np.array([0, 1, 2, 3, 4])).tolist()
    ('sliding 30m by 1s', [2, 2, 4, 4, 6])
    """
    size_us = positive_duration(size, "window size", "sliding('1m', '1s')")
    slide_us = positive_duration(slide, "window slide", "sliding('1m', '1s')")
    if slide_us > size_us:
        msg = (
            f"window slide is longer than the window: got size {size!r}, slide {slide!r}; rows "
            "between windows would be lost, so filter them out before or make the slide shorter"
        )
        raise GraphError(msg)
    return Sliding(size_us, slide_us, _within(offset, slide_us))


def cumulative(size: Duration, step: Duration, offset: Duration = 0) -> Cumulative:
    """Windows that share their start and grow by `step`: the day so far, each hour.

    >>> day = cumulative("1d", "1h")
    >>> str(day), day.start(day.size - day.step), day.start(day.size + day.step) == day.size
    ('cumulative 1d by 1h', 0, True)
    """
    size_us = positive_duration(size, "window size", "cumulative('1d', '1h')")
    step_us = positive_duration(step, "window step", "cumulative('1d', '1h')")
    if size_us % step_us:
        msg = (
            f"window size is not a multiple of its step: got size {size!r}, step {step!r}; "
            "pass e.g. cumulative('1d', '1h')"
        )
        raise GraphError(msg)
    return Cumulative(size_us, step_us, _within(offset, size_us))


def _floor(times: _Time, size: int, offset: int) -> _Time:
    return (times - offset) // size * size + offset


def _within(offset: Duration, size: Micros) -> Micros:
    return Micros(parse_duration(offset, "window offset") % size)


def _offset(offset: Micros) -> str:
    return f", offset {format_duration(offset)}" if offset else ""
