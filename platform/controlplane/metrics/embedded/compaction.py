"""Compaction: rows that are old enough become blocks, and blocks that are too old go.

    points ──closed stretch──▶ raw block, roll-ups ──old──▶ roll-ups only ──older──▶ nothing

A stretch is closed when its column has newer points behind it, or when it is about to be too old.
Points that come late wait as rows beside its block, and count; the next compaction writes it anew.

Guarantee  each step is one transaction of some ten milliseconds, between which others write:
           killed anywhere, a point is a row or in a block. What a chart shows is the same before
           and after. Before its seal a column is final: what is written there again is refused, so
           it stays what it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from controlplane.metrics.contract import DAY_MS, ns_of
from controlplane.metrics.embedded import blocks
from controlplane.metrics.embedded.blocks import FULL, SPANS_NS, Region, region_at
from controlplane.metrics.embedded.database import Database, Db, next_generation
from controlplane.metrics.embedded.partials import Points

MOST = 4 * FULL
"""Rows for which a stretch is too long."""
AT_ONCE = 2
"""Stretches of one transaction, of thousands of rows each: some ten milliseconds."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How long the points of a bucket are kept, by age; None: for ever."""

    raw_ms: int | None = None
    tens_ms: int | None = None
    minutes_ms: int | None = None
    hours_ms: int | None = None
    newest: int | None = None
    """Raw points of each series and field at most, some more at times."""

    def step_ms(self, step_ns: int) -> int | None:
        """How long roll-ups of a step are kept."""
        kept = {
            blocks.TENS: self.tens_ms,
            blocks.MINUTES: self.minutes_ms,
            blocks.HOURS: self.hours_ms,
        }
        return kept[step_ns]


MEASURED = Keep(DAY_MS, 8 * DAY_MS, 60 * DAY_MS, 730 * DAY_MS)
"""Figures on the wall clock: a day of every point, a week of ten seconds, two years of hours."""
WRITTEN = Keep(newest=1_000_000)
"""Points in event time, which says nothing about their age."""

KEPT: Mapping[str, Keep] = {
    "engine": MEASURED,
    "metrics": MEASURED,
    "platform": MEASURED,
    "outputs": WRITTEN,
}

_COLUMNS = (
    "SELECT columns.id, type FROM columns JOIN series ON series_id = series.id"
    " JOIN field_types USING (bucket, measurement, field) WHERE bucket = ? ORDER BY columns.id"
)


def compact(database: Database, bucket: str, now_ms: float, keep: Keep) -> Iterator[int]:
    """Turn closed stretches into blocks; yields after each transaction how many they were."""
    ripe_ns = -(2**63) if keep.raw_ms is None else ns_of(now_ms) - ns_of(keep.raw_ms)
    with database.reading() as db:
        columns = [id_ for id_, kind in db.execute(_COLUMNS, (bucket,)) if kind != "string"]
    for first in range(0, len(columns), AT_ONCE):
        some = columns[first : first + AT_ONCE]
        while _has_closed(database, some, ripe_ns):
            with database.writing() as db:
                yield sum(_compact_oldest(db, column, ripe_ns) for column in some)


def _has_closed(database: Database, columns: list[int], ripe_ns: int) -> bool:
    with database.reading() as db:
        return any(_closed(db, column, ripe_ns) is not None for column in columns)


def _compact_oldest(db: Db, column: int, ripe_ns: int) -> bool:
    """Turn the oldest closed stretch of a column into a block; False when there is none."""
    region = _closed(db, column, ripe_ns)
    if region is None:
        return False
    points = _rows(db, column, region)
    known = blocks.raw_points(db, column, region)
    if known is not None:
        points = known.overwritten_by(
            Points(points.times, points.values.astype(known.values.dtype))
        )
    blocks.put(db, column, region, points)
    db.execute(
        "DELETE FROM points WHERE column_id = ? AND time_ns >= ? AND time_ns < ?",
        (column, region.start, region.end),
    )
    return True


def _closed(db: Db, column: int, ripe_ns: int) -> Region | None:
    """The oldest stretch whose rows may become a block."""
    first, last = db.execute(
        "SELECT (SELECT min(time_ns) FROM points WHERE column_id = ?1),"
        " (SELECT max(time_ns) FROM points WHERE column_id = ?1)",
        (column,),
    ).fetchone()
    while first is not None:
        region, worth_it = _region(db, column, first)
        if region.end > last and region.end > ripe_ns:
            return None
        if worth_it or region.end <= ripe_ns:
            return region
        # Hardly any in a month: they stay rows, and those after them are looked at.
        (first,) = db.execute(
            "SELECT min(time_ns) FROM points WHERE column_id = ? AND time_ns >= ?",
            (column, region.end),
        ).fetchone()
    return None


def _region(db: Db, column: int, time_ns: int) -> tuple[Region, bool]:
    """The stretch of a moment, and whether its rows are worth a block.

    It is that of its block; else as long as it takes for enough rows, but not for too many.
    """
    for region, _ in blocks.regions(db, column, time_ns, time_ns + 1):
        return region, True
    chosen = region_at(time_ns, SPANS_NS[0])
    for span in SPANS_NS:
        region = region_at(time_ns, span)
        count = _count(db, column, region)
        if count > MOST or blocks.regions(db, column, region.start, region.end):
            return chosen, True  # other hours around it are blocks, or will be
        chosen = region
        if count >= FULL:
            return chosen, True
    return chosen, False


def _count(db: Db, column: int, region: Region) -> int:
    """Rows of a stretch, or more than most."""
    (count,) = db.execute(
        "SELECT count(*) FROM (SELECT 1 FROM points WHERE column_id = ? AND time_ns >= ?"
        " AND time_ns < ? LIMIT ?)",
        (column, region.start, region.end, MOST + 1),
    ).fetchone()
    return int(count)


def _rows(db: Db, column: int, region: Region) -> Points:
    rows = db.execute(
        "SELECT time_ns, value FROM points WHERE column_id = ? AND time_ns >= ? AND time_ns < ?"
        " ORDER BY time_ns",
        (column, region.start, region.end),
    ).fetchall()
    times, values = zip(*rows, strict=True)
    return Points(np.array(times, np.int64), np.array(values))


def expire(database: Database, bucket: str, now_ms: float, keep: Keep) -> Iterator[int]:
    """Delete what is older than it is kept; yields after each transaction how much that was."""
    with database.reading() as db:
        columns = [id_ for id_, _ in db.execute(_COLUMNS, (bucket,))]
    for first in range(0, len(columns), AT_ONCE):
        with database.writing() as db:
            for column in columns[first : first + AT_ONCE]:
                _expire(db, column, ns_of(now_ms), keep)
            gone = _drop_empty(db, columns[first : first + AT_ONCE])
        yield gone


def _expire(db: Db, column: int, now_ns: int, keep: Keep) -> None:
    limit = _raw_limit(db, column, now_ns, keep)
    if limit is not None:
        _seal(db, column, limit)
    for step in blocks.STEPS_NS:
        kept = keep.step_ms(step)
        if kept is not None:
            db.execute(
                "DELETE FROM rollups WHERE column_id = ? AND step_ns = ? AND start_ns <= ?",
                (column, step, now_ns - ns_of(kept) - blocks.SPAN_OF[step]),
            )
    if keep.hours_ms is not None:
        db.execute(
            "DELETE FROM raw WHERE column_id = ? AND end_ns <= ?",
            (column, now_ns - ns_of(keep.hours_ms)),
        )


def _raw_limit(db: Db, column: int, now_ns: int, keep: Keep) -> int | None:
    """Before which time raw points go."""
    if keep.raw_ms is not None:
        return now_ns - ns_of(keep.raw_ms)
    if keep.newest is None:
        return None
    seen = 0
    for start, count in db.execute(
        "SELECT start_ns, count FROM raw WHERE column_id = ? ORDER BY start_ns DESC", (column,)
    ):
        seen += count
        if seen > keep.newest:
            return int(start)
    return None


def _seal(db: Db, column: int, limit: int) -> None:
    """Delete raw blocks that end before a time and have roll-ups; what they cover is final."""
    rows = db.execute(
        "SELECT max(end_ns) FROM raw WHERE column_id = ? AND end_ns <= ? AND finest_ns > 0",
        (column, limit),
    )
    (sealed,) = rows.fetchone()
    if sealed is None:
        return
    db.execute(
        "DELETE FROM raw WHERE column_id = ? AND end_ns <= ? AND finest_ns > 0", (column, sealed)
    )
    # Those that came while it was being sealed are no part of any block.
    db.execute("DELETE FROM points WHERE column_id = ? AND time_ns < ?", (column, sealed))
    db.execute(
        "UPDATE columns SET sealed_ns = max(coalesce(sealed_ns, ?2), ?2) WHERE id = ?1",
        (column, sealed),
    )
    next_generation(db)


def _drop_empty(db: Db, columns: list[int]) -> int:
    """Forget columns without anything, and series without columns."""
    gone = 0
    for column in columns:
        gone += db.execute(
            "DELETE FROM columns WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM points WHERE column_id = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM raw WHERE column_id = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM rollups WHERE column_id = ?1)",
            (column,),
        ).rowcount
    if gone:
        db.execute(
            "DELETE FROM series WHERE NOT EXISTS"
            " (SELECT 1 FROM columns WHERE series_id = series.id)"
        )
        next_generation(db)
    return gone
