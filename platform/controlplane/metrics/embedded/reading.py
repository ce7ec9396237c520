"""What charts read of one column: rows, blocks and roll-ups put together.

    [low, high) ──▶ roll-ups where a stretch has them and no row waits beside it
                ──▶ points of its raw block and of its rows everywhere else

Guarantee  the same whether points are rows or blocks, but for the last bits of sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from controlplane.metrics.contract import Aggregate
from controlplane.metrics.embedded import blocks
from controlplane.metrics.embedded.blocks import Region
from controlplane.metrics.embedded.database import Db
from controlplane.metrics.embedded.partials import (
    Partials,
    Points,
    of_points,
    rolled,
    together,
    values,
)
from controlplane.metrics.line_protocol import FieldValue

Rows = list[tuple[int, FieldValue]]
"""(ns, value)"""

_ROWS = (
    "SELECT time_ns, value FROM points WHERE column_id = ? AND time_ns >= ? AND time_ns < ?"
    " ORDER BY time_ns DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One field of one series."""

    id: int
    kind: str
    sealed: int | None

    def numbers(self, array: np.ndarray) -> np.ndarray:
        """Values in the type of the field."""
        return array.astype(bool) if self.kind == "boolean" else array


def newest(db: Db, column: Column, low: int, high: int, limit: int) -> Rows:
    """The newest points of [low, high), oldest first."""
    found: dict[int, FieldValue] = {}
    for region, _ in reversed(blocks.regions(db, column.id, low, high)):
        points = blocks.raw_points(db, column.id, region)
        if points is None:
            continue
        part = points.within(low, high)
        found |= zip(part.times.tolist(), column.numbers(part.values).tolist(), strict=True)
        if len(found) >= limit:
            low = max(low, region.start)
            break
    rows = db.execute(_ROWS, (column.id, _after_seal(column, low), high, limit)).fetchall()
    if column.kind == "boolean":
        rows = [(time, bool(value)) for time, value in rows]
    found |= rows
    return sorted(found.items())[-limit:]


def stepped(db: Db, column: Column, low: int, high: int, step: int, aggregate: Aggregate) -> Rows:
    """One value for each step of [low, high) that has points."""
    parts = [part for part in _parts(db, column, low, high, step) if len(part)]
    if not parts:
        return []
    whole = rolled(together(parts), step)
    return list(zip(whole.start.tolist(), values(whole, aggregate).tolist(), strict=True))


def _parts(db: Db, column: Column, low: int, high: int, step: int) -> Iterator[Partials]:
    level = next((one for one in reversed(blocks.STEPS_NS) if step % one == 0), blocks.NOTHING)
    rows = _waiting(db, column, low, high)
    found = blocks.regions(db, column.id, low, high)
    rolled_up = []
    for region, finest in found:
        late = rows.within(region.start, region.end)
        whole = region.start >= low and region.end <= high
        if whole and level >= finest > blocks.NOTHING and not len(late):
            rolled_up.append(region)
        else:
            yield of_points(_points(db, column, region, late).within(low, high))
    beside = _outside(rows, [region for region, _ in found])
    yield of_points(beside.within(low, high))
    yield from _rolled_up(db, column, rolled_up, level)
    yield from _final(db, column, low, high, level)


def _waiting(db: Db, column: Column, low: int, high: int) -> Points:
    """Rows, also those of blocks that reach out of the range."""
    first = max(low // blocks.MONTH_NS * blocks.MONTH_NS, blocks.FIRST_NS)
    last = min(-(-high // blocks.MONTH_NS) * blocks.MONTH_NS, blocks.LAST_NS)
    rows = db.execute(_ROWS, (column.id, _after_seal(column, first), last, -1)).fetchall()[::-1]
    times = np.array([time for time, _ in rows], np.int64)
    return Points(times, np.array([value for _, value in rows]))


def _points(db: Db, column: Column, region: Region, late: Points) -> Points:
    known = blocks.raw_points(db, column.id, region)
    if known is None:
        return late
    return known.overwritten_by(Points(late.times, late.values.astype(known.values.dtype)))


def _outside(rows: Points, found: list[Region]) -> Points:
    """Rows that lie beside no block."""
    mask = np.ones(len(rows), bool)
    for region in found:
        mask &= (rows.times < region.start) | (rows.times >= region.end)
    return Points(rows.times[mask], rows.values[mask])


def _rolled_up(db: Db, column: Column, regions: list[Region], level: int) -> Iterator[Partials]:
    """The roll-ups of some stretches."""
    if not regions:
        return
    starts = np.array([region.start for region in regions])
    ends = np.array([region.end for region in regions])
    for block in blocks.rollups(db, column.id, level, regions[0].start, regions[-1].end):
        at = np.searchsorted(starts, block.start, "right") - 1
        yield block.where((at >= 0) & (block.start < ends[at]))


def _final(db: Db, column: Column, low: int, high: int, level: int) -> Iterator[Partials]:
    """The roll-ups of what is sealed, the finest that are left: there are no points any more."""
    if column.sealed is None or low >= column.sealed:
        return
    high = min(high, column.sealed)
    for step in blocks.STEPS_NS[blocks.STEPS_NS.index(level) if level else 0 :]:
        found = [part.within(low, high) for part in blocks.rollups(db, column.id, step, low, high)]
        found = [part for part in found if len(part)]
        yield from found
        if found:
            # Before the first of them there may be coarser ones, which are kept for longer.
            high = int(found[0].start[0]) // blocks.HOUR_NS * blocks.HOUR_NS
        if high <= low:
            return


def _after_seal(column: Column, low: int) -> int:
    return low if column.sealed is None else max(low, column.sealed)


def ends(db: Db, column: int) -> list[int]:
    """Times of the first and the last point of a column, of sealed ones by their roll-up."""
    found = db.execute(
        "SELECT (SELECT min(time_ns) FROM points WHERE column_id = ?1),"
        " (SELECT max(time_ns) FROM points WHERE column_id = ?1),"
        " (SELECT min(start_ns) FROM raw WHERE column_id = ?1),"
        " (SELECT max(start_ns) FROM raw WHERE column_id = ?1),"
        " (SELECT min(start_ns) FROM rollups WHERE column_id = ?1 AND step_ns = ?2)",
        (column, blocks.HOURS),
    ).fetchone()
    first_row, last_row, first_raw, last_raw, first_hours = found
    times = [time for time in (first_row, last_row) if time is not None]
    for start in {first_raw, last_raw} - {None}:
        points = next(iter(_blocks_at(db, column, start)))
        times += [int(points.times[0]), int(points.times[-1])]
    if first_hours is not None:
        oldest = blocks.rollups(db, column, blocks.HOURS, first_hours, first_hours + 1)[0]
        if first_raw is None or oldest.start[0] < first_raw:
            times.append(int(oldest.start[0]))
    return times


def _blocks_at(db: Db, column: int, start: int) -> Iterator[Points]:
    for region, _ in blocks.regions(db, column, start, start + 1):
        points = blocks.raw_points(db, column, region)
        if points is not None:
            yield points
