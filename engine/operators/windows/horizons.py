"""Horizons: the points of event time at which windows give results, and what counts at each.

    window end         end + every       end + 2·every …            end + allowed
    |------------------|-----------------|--------------------------|
    first result       again, when rows came that were late for     rows after this are late
                       the result before

A row counts in a result when its own row watermark is below the horizon: that depends on the row
and its split only, so neither batches nor parallelism nor speed decide which result shows it first.

Shapes   windows lie on a grid, and so do horizons. A row that some horizon must leave out is kept
         under the grid point that it counts from, as a straggler; all others need no such mark.
Source   Akidau et al., The Dataflow Model, VLDB 2015 (allowed lateness, refinements).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeVar

import numpy as np

from engine.durations import Duration, format_duration, parse_duration
from engine.elements import Micros
from engine.errors import GraphError
from engine.windows import SlicedWindows, Times

Ends = TypeVar("Ends", int, Times)
"""The end of one slice, or of many."""


@dataclass(frozen=True, slots=True)
class Horizons:
    """When windows fire. `allowed`: lateness; `every`: how often late rows fire windows again."""

    window: SlicedWindows
    allowed: Micros
    every: Micros

    @property
    def grid(self) -> int:
        """All horizons are whole multiples of this from the window's anchor."""
        return gcd(self.window.step, self.every)

    def counts_from(self, slice_ends: Times, marks: Times) -> Times:
        """The first grid point above a mark, not before the first window of the slice ends.

        Rows are late, for every window, when that `is_after` the last horizon.
        """
        first = self.window.first_ends(slice_ends)
        # Bounded first: a mark may be the smallest or largest number there is.
        marks = np.clip(marks, first - 1, self.last(slice_ends))
        anchor = self.window.anchor
        counts: Times = (marks - anchor) // self.grid * self.grid + self.grid + anchor
        return counts

    def last(self, slice_ends: Ends) -> Ends:
        """The last horizon at which a slice is of use."""
        return self.window.last_ends(slice_ends) + self.allowed

    def between(self, since: int, until: int) -> bool:
        """Whether there is a grid point with since < point <= until."""
        return (until - self.window.anchor) // self.grid > (since - self.window.anchor) // self.grid

    def ends(self, slice_ends: Sequence[int], since: int, until: int) -> list[int]:
        """The ends of all windows with some slice: since < end <= until. All in order."""
        last = until - (until - self.window.anchor) % self.window.step
        found: list[int] = []
        after = since
        for slice_end in slice_ends:
            if after >= last:
                break
            found += self._ends(slice_end, after, until)
            after = found[-1] if found else since
        return found

    def _ends(self, slice_end: int, since: int, until: int) -> range:
        step = self.window.step
        lo = self.window.first_ends(slice_end)
        if lo <= since:
            lo += (since - lo) // step * step + step
        return range(lo, min(self.window.last_ends(slice_end), until) + 1, step)

    def late_firings(
        self, slice_end: int, counts_from: Collection[int], since: int, until: int
    ) -> set[tuple[int, int]]:
        """(horizon, window end) of all results that stragglers of a slice are in, or are the news.

        `counts_from`: the grid points that they count from.
        """
        first = min(counts_from)
        found = {(end, end) for end in self._ends(slice_end, max(since, first - 1), until)}
        for point in counts_from:
            if not self.allowed or not since - self.every < point <= until:
                continue  # what it is late for has been given again, or is not due
            for end in self._ends(slice_end, point - self.allowed - 1, point - 1):
                horizon = self.horizon(end, point)
                if since < horizon <= min(until, end + self.allowed):
                    found.add((horizon, end))
        return found

    def horizon(self, end: int, counts_from: int) -> int:
        """The first horizon of a window that is not before a point."""
        if counts_from <= end:
            return end
        return end + -((end - counts_from) // self.every) * self.every if self.every else 2**63

    def __str__(self) -> str:
        if not self.allowed:
            return str(self.window)
        again = f", again each {format_duration(self.every)}" if self.every < self.allowed else ""
        return f"{self.window}, {format_duration(self.allowed)} late{again}"


def horizons(
    window: SlicedWindows, allowed: Duration = 0, every: Duration | None = None
) -> Horizons:
    """Check how late rows may be, and how often they fire windows again. Raises GraphError.

    >>> from engine.windows import tumbling
    >>> str(horizons(tumbling("1m"), "1h", every="10m"))
    'tumbling 1m, 1h late, again each 10m'
    """
    return Horizons(window, *updates(allowed, every))


def updates(allowed: Duration, every: Duration | None) -> tuple[Micros, Micros]:
    """How late rows may be, and how often they fire windows again, in µs. Raises GraphError."""
    allowed_us = parse_duration(allowed, "allowed lateness")
    every_us = allowed_us if every is None else parse_duration(every, "every of allowed lateness")
    if allowed_us < 0:
        msg = f"allowed lateness is negative: got {allowed!r}; pass 0 or more"
        raise GraphError(msg)
    if allowed_us and (every_us <= 0 or allowed_us % every_us):
        msg = (
            f"allowed lateness is not a whole number of updates: got {allowed!r}, every {every!r}; "
            "pass e.g. allowed_lateness('1h', every='10m')"
        )
        raise GraphError(msg)
    return allowed_us, every_us if allowed_us else Micros(0)
