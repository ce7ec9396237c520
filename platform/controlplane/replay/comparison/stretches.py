"""Stretches of event time: cut at hours, joined, and taken off one another. Pure.

Units    µs, [from, to).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controlplane.replay.comparison.compare import HOUR_US

Stretch = tuple[int, int]


def whole_hours(stretches: Iterable[Stretch], since: int, until: int) -> list[Stretch]:
    """The hours that they touch between two times, joined where they meet.

    >>> whole_hours([(1, 2), (HOUR_US, HOUR_US + 1)], 0, 9 * HOUR_US) == [(0, 2 * HOUR_US)]
    True
    """
    found: list[Stretch] = []
    for begin, end in sorted(stretches):
        first = max(since, begin // HOUR_US * HOUR_US)
        last = min(until, -(-end // HOUR_US) * HOUR_US)
        if first >= last:
            continue
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def pieces(stretch: Stretch, hours: int) -> Iterator[Stretch]:
    """A stretch cut at each so many hours."""
    begin, end = stretch
    size = hours * HOUR_US
    while begin < end:
        cut = min(end, begin // size * size + size)
        yield begin, cut
        begin = cut


def without(stretches: Iterable[Stretch], done: Stretch) -> list[Stretch]:
    """What is left of them.

    >>> without([(0, 10), (20, 30)], (5, 25))
    [(0, 5), (25, 30)]
    """
    left = []
    for begin, end in stretches:
        parts = (begin, min(end, done[0])), (max(begin, done[1]), end)
        left += [part for part in parts if part[0] < part[1]]
    return left
