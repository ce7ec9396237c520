"""Blocks of one column: points that do not change any more, and roll-ups of them.

    hour of many points   raw 1 h │ roll-ups 10 s, 1 min, 1 h
    hour of some          raw 1 h │ roll-ups 1 min, 1 h             (as many points as roll-ups)
    day of few            raw 1 d │ roll-ups 1 min, 1 h
    month of hardly any   raw 30 d                                  (its points are as coarse)

Guarantee  roll-ups are made of all points of their span, every time anew: a late point, or one that
           is written again, leaves what one writing of everything would have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controlplane.metrics.embedded.codec import packed, unpacked
from controlplane.metrics.embedded.database import Db
from controlplane.metrics.embedded.partials import Partials, Points, of_points, rolled, together

FIRST_NS, LAST_NS = -(2**63), 2**63 - 1
SECOND_NS = 1_000_000_000
HOUR_NS, DAY_NS = 3_600 * SECOND_NS, 86_400 * SECOND_NS
MONTH_NS = 30 * DAY_NS

TENS, MINUTES, HOURS = 10 * SECOND_NS, 60 * SECOND_NS, HOUR_NS
STEPS_NS = (TENS, MINUTES, HOURS)
SPAN_OF = {TENS: 6 * HOUR_NS, MINUTES: DAY_NS, HOURS: MONTH_NS}
"""What one block of roll-ups covers: it is written anew with each hour of it."""

SPANS_NS = (HOUR_NS, DAY_NS, MONTH_NS)
FULL = 256
"""Points that are worth a block."""
DENSE = 720
"""Points of an hour of which roll-ups to ten seconds are fewer."""
NOTHING = 0
"""Finest step of a block without roll-ups."""


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a column that is one raw block, or becomes one."""

    start: int
    end: int

    def finest(self, count: int) -> int:
        """The finest step to which it is rolled up; coarser ones are made too."""
        match self.end - self.start:
            case span if span == HOUR_NS:
                return TENS if count >= DENSE else MINUTES
            case span if span == DAY_NS:
                return MINUTES
            case _:
                return NOTHING


def region_at(start: int, span: int) -> Region:
    """The stretch of that length that a moment lies in."""
    begin = start // span * span
    return Region(begin, begin + span)


def raw_points(db: Db, column: int, region: Region) -> Points | None:
    """The points of a raw block; None when there is no such block."""
    row = db.execute(
        "SELECT block FROM raw WHERE column_id = ? AND start_ns = ? AND end_ns = ?",
        (column, region.start, region.end),
    ).fetchone()
    return None if row is None else Points(*unpacked(row[0]))


def regions(db: Db, column: int, low: int, high: int) -> list[tuple[Region, int]]:
    """Raw blocks that overlap [low, high), oldest first, with their finest step."""
    rows = db.execute(
        "SELECT start_ns, end_ns, finest_ns FROM raw"
        " WHERE column_id = ? AND start_ns < ? AND start_ns > ? AND end_ns > ? ORDER BY start_ns",
        (column, high, max(low - MONTH_NS, FIRST_NS), low),
    )
    return [(Region(start, end), finest) for start, end, finest in rows]


def put(db: Db, column: int, region: Region, points: Points) -> None:
    """Write the block of a region, and what follows from it."""
    finest = region.finest(len(points))
    db.execute(
        "INSERT OR REPLACE INTO raw VALUES (?, ?, ?, ?, ?, ?)",
        (
            column,
            region.start,
            region.end,
            finest,
            len(points),
            packed([points.times, points.values]),
        ),
    )
    if finest == NOTHING:
        return
    partials = of_points(points)
    for step in STEPS_NS[STEPS_NS.index(finest) :]:
        _put_rollups(db, column, region, step, rolled(partials, step))


def _put_rollups(db: Db, column: int, region: Region, step: int, partials: Partials) -> None:
    """Put the roll-ups of a region in the place of those that were there."""
    start = region.start // SPAN_OF[step] * SPAN_OF[step]
    whole = together([*_others(db, column, region, step), partials])
    db.execute(
        "INSERT OR REPLACE INTO rollups VALUES (?, ?, ?, ?)", (column, step, start, _pack(whole))
    )


def drop_rollups(db: Db, column: int, region: Region, step: int) -> None:
    """Take away the roll-ups of a region."""
    start = region.start // SPAN_OF[step] * SPAN_OF[step]
    others = [known for known in _others(db, column, region, step) if len(known.start)]
    at = (column, step, start)
    db.execute("DELETE FROM rollups WHERE column_id = ? AND step_ns = ? AND start_ns = ?", at)
    if others:
        db.execute("INSERT INTO rollups VALUES (?, ?, ?, ?)", (*at, _pack(together(others))))


def _others(db: Db, column: int, region: Region, step: int) -> list[Partials]:
    """The roll-ups of its span that are not of the region."""
    start = region.start // SPAN_OF[step] * SPAN_OF[step]
    return [
        known.where((known.start < region.start) | (known.start >= region.end))
        for known in rollups(db, column, step, start, start + SPAN_OF[step])
    ]


def rollups(db: Db, column: int, step: int, low: int, high: int) -> list[Partials]:
    """Blocks of roll-ups that overlap [low, high), oldest first."""
    rows = db.execute(
        "SELECT block FROM rollups"
        " WHERE column_id = ? AND step_ns = ? AND start_ns > ? AND start_ns < ? ORDER BY start_ns",
        (column, step, max(low - SPAN_OF[step], FIRST_NS), high),
    )
    return [_unpack(block) for (block,) in rows]


def _pack(whole: Partials) -> bytes:
    return packed([whole.start, whole.low, whole.high, whole.total, whole.count, whole.last])


def _unpack(block: bytes) -> Partials:
    columns: Sequence[np.ndarray] = unpacked(block)
    return Partials(*columns)
