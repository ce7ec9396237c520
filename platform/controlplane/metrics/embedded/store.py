"""Embedded series store: points by measurement, tag set and time, in one SQLite file.

    write ──▶ rows ──compact──▶ blocks, roll-ups of 10 s, 1 min, 1 h ──▶ query

Units    times are ns inside, epoch ms at the query interface.
Guarantee  a point is its measurement, tag set and time: writing it again overwrites its fields
         and leaves its other fields alone, so a replay changes nothing, in no roll-up either. A
         write is one transaction.
Errors   a field keeps the type of its first value, as in InfluxDB: other types are refused; so are
         points from before the time of which raw points are kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from controlplane.metrics.contract import (
    LIMIT,
    NANOS_PER_MS,
    Aggregate,
    Refused,
    Series,
    Where,
    ms_of,
    ns_of,
)
from controlplane.metrics.embedded import reading
from controlplane.metrics.embedded.compaction import (
    KEPT,
    WRITTEN,
    Keep,
    compact,
    expire,
)
from controlplane.metrics.embedded.database import Columns, Database, Db
from controlplane.metrics.embedded.removal import remove_from
from controlplane.metrics.line_protocol import FieldValue, Point

PAUSE_S = 0.005
"""After each step of a compaction: SQLite gives no turn to whoever waits."""

_TYPES = {bool: "boolean", int: "integer", float: "float", str: "string"}
_MATCHING = (
    "SELECT series.tags, columns.id, type, sealed_ns FROM series"
    " JOIN columns ON series_id = series.id JOIN field_types USING (bucket, measurement, field)"
    " WHERE bucket = ? AND measurement = ? AND field = ?"
)


class SeriesStore:
    """The store at one path; safe to share between threads."""

    def __init__(self, path: Path, keep: Mapping[str, Keep] = KEPT) -> None:
        self.path = path
        self._keep = dict(keep)
        self.database = Database(path)
        self._columns = Columns()

    def close(self) -> None:
        """Close the connections that are not in use."""
        self.database.close()

    # Writing.

    def write(self, bucket: str, points: Sequence[Point]) -> list[Refused]:
        """Keep the points, but for those that are returned."""
        refused: list[Refused] = []
        try:
            with self.database.writing() as db:
                self._columns.refresh(db)
                rows = list(self._rows(db, bucket, points, refused))
                db.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?)", rows)
        except BaseException:
            self._columns.forget()
            raise
        return refused

    def _rows(
        self, db: Db, bucket: str, points: Sequence[Point], refused: list[Refused]
    ) -> Iterator[tuple[int, int, FieldValue]]:
        for index, point in enumerate(points):
            if reason := self._conflict(db, bucket, point):
                refused.append(Refused(index, reason))
                continue
            late = False
            for field, value in point.fields:
                column, sealed = self._columns.column(db, bucket, point, field)
                if sealed is not None and point.time_ns < sealed:
                    late = True
                else:
                    yield column, point.time_ns, value
            if late:
                refused.append(Refused(index, "it is older than raw points are kept", True))

    def _conflict(self, db: Db, bucket: str, point: Point) -> str | None:
        """Why the point does not fit what was written before; its new fields are taken on."""
        for field, value in point.fields:
            given = _TYPES[type(value)]
            known = self._columns.type_of(db, bucket, point.measurement, field, given)
            if known != given:
                return f"field {field!r} is of type {known}: got {given}"
        return None

    def remove(self, bucket: str, measurement: str, start_ms: float) -> None:
        """Remove the points of a measurement from a time on."""
        with self.database.writing() as db:
            columns = db.execute(
                "SELECT columns.id FROM columns JOIN series ON series_id = series.id"
                " WHERE bucket = ? AND measurement = ?",
                (bucket, measurement),
            ).fetchall()
            for (column,) in columns:
                remove_from(db, column, ns_of(start_ms))

    # Housekeeping.

    def compact(self, now_ms: float) -> int:
        """Turn rows into blocks; returns how many. Others may write meanwhile."""
        return sum(
            _with_pauses(compact(self.database, bucket, now_ms, keep))
            for bucket, keep in self._kept()
        )

    def expire(self, now_ms: float) -> int:
        """Delete what is older than it is kept; returns how many columns were forgotten."""
        return sum(
            _with_pauses(expire(self.database, bucket, now_ms, keep))
            for bucket, keep in self._kept()
        )

    def _kept(self) -> list[tuple[str, Keep]]:
        with self.database.reading() as db:
            buckets = [name for (name,) in db.execute("SELECT DISTINCT bucket FROM series")]
        return [(bucket, self._keep.get(bucket, WRITTEN)) for bucket in buckets]

    # Reading.

    def query(
        self,
        bucket: str,
        measurement: str,
        field: str,
        *,
        where: Where | None = None,
        start_ms: float | None = None,
        stop_ms: float | None = None,
        step_ms: int | None = None,
        aggregate: Aggregate | str = Aggregate.MEAN,
        limit: int = LIMIT,
    ) -> list[Series]:
        """As `SeriesSource.query`."""
        low, high = ns_of(start_ms, -(2**63)), ns_of(stop_ms, 2**63 - 1)
        step_ns, how = (step_ms or 0) * NANOS_PER_MS, Aggregate(aggregate)
        found = []
        with self.database.snapshot() as db:
            for tags, column in _matching(db, bucket, measurement, field, where or {}):
                if not step_ns:
                    rows = reading.newest(db, column, low, high, limit)
                elif column.kind == "string":
                    continue
                else:
                    rows = reading.stepped(db, column, low, high, step_ns, how)[-limit:]
                if rows:
                    found.append(Series(tags, [(ms_of(at), value) for at, value in rows]))
        return found

    def measurements(self, bucket: str) -> list[str]:
        """What has been written to."""
        with self.database.reading() as db:
            rows = db.execute(
                "SELECT DISTINCT measurement FROM series WHERE bucket = ? ORDER BY 1", (bucket,)
            )
            return [name for (name,) in rows]

    def fields(self, bucket: str, measurement: str) -> dict[str, str]:
        """Its fields and their types: float, integer, boolean, string."""
        with self.database.reading() as db:
            rows = db.execute(
                "SELECT field, type FROM field_types WHERE bucket = ? AND measurement = ?"
                " ORDER BY field",
                (bucket, measurement),
            )
            return dict(rows.fetchall())

    def tag_sets(self, bucket: str, measurement: str) -> list[dict[str, str]]:
        """The tag sets of its series."""
        with self.database.reading() as db:
            rows = db.execute(
                "SELECT tags FROM series WHERE bucket = ? AND measurement = ?",
                (bucket, measurement),
            )
            return [dict(pairs) for pairs in sorted(json.loads(raw) for (raw,) in rows)]

    def span_ms(self, bucket: str, measurement: str) -> tuple[float, float] | None:
        """Times of its first and last point."""
        with self.database.snapshot() as db:
            columns = db.execute(
                "SELECT columns.id FROM columns JOIN series ON series_id = series.id"
                " WHERE bucket = ? AND measurement = ?",
                (bucket, measurement),
            ).fetchall()
            ends = [end for (column,) in columns for end in reading.ends(db, column)]
        return (ms_of(min(ends)), ms_of(max(ends))) if ends else None


def _matching(
    db: Db, bucket: str, measurement: str, field: str, where: Where
) -> Iterator[tuple[dict[str, str], reading.Column]]:
    wanted = {key: {one} if isinstance(one, str) else set(one) for key, one in where.items()}
    rows = db.execute(_MATCHING, (bucket, measurement, field)).fetchall()
    for pairs, column in sorted(
        ((json.loads(raw), reading.Column(*column)) for raw, *column in rows),
        key=lambda row: row[0],
    ):
        tags = dict(pairs)
        if all(tags.get(key) in values for key, values in wanted.items()):
            yield tags, column


def _with_pauses(steps: Iterator[int]) -> int:
    done = 0
    for step in steps:
        done += step
        time.sleep(PAUSE_S)
    return done
