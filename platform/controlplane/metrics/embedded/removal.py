"""Removal of the points of a column from a time on, in rows, blocks and roll-ups.

    raw block that reaches past the time ──▶ rows before it; its roll-ups go, and are made anew

Guarantee  what is left shows as if nothing else had ever been written.
"""

from __future__ import annotations

from controlplane.metrics.embedded import blocks
from controlplane.metrics.embedded.blocks import LAST_NS, STEPS_NS, Region
from controlplane.metrics.embedded.database import Db


def remove_from(db: Db, column: int, since_ns: int) -> None:
    """Remove the points of [since, ∞) of a column."""
    for region, finest in blocks.regions(db, column, since_ns, LAST_NS):
        points = blocks.raw_points(db, column, region)
        if points is not None:
            before = points.times < since_ns
            db.executemany(
                "INSERT OR IGNORE INTO points VALUES (?, ?, ?)",
                [
                    (column, time, value)
                    for time, value in zip(
                        points.times[before].tolist(), points.values[before].tolist(), strict=True
                    )
                ],
            )
        _remove_block(db, column, region, finest)
    db.execute("DELETE FROM points WHERE column_id = ? AND time_ns >= ?", (column, since_ns))


def _remove_block(db: Db, column: int, region: Region, finest: int) -> None:
    db.execute("DELETE FROM raw WHERE column_id = ? AND start_ns = ?", (column, region.start))
    if finest == blocks.NOTHING:
        return
    for step in STEPS_NS[STEPS_NS.index(finest) :]:
        blocks.drop_rollups(db, column, region, step)
