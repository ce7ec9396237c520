"""Embedded series store: points by measurement, tag set and time, in one SQLite file.

    series   (bucket, measurement, tags)                    -> id
    columns  (series, field)                                -> id, type
    points   (column, time) -> value                        one row per field value

Units    times are ns inside, epoch ms at the query interface.
Order    series come sorted by their tags, points by time.
Guarantee  a point is its measurement, tag set and time: writing it again overwrites its fields and
         leaves its other fields alone, so a replay changes nothing. A write is one transaction,
         on disk (WAL, synchronous NORMAL: a power cut may lose the last moments, a crash does not).
Needs    a local file system; several processes may write at once.
Errors   a field keeps the type of its first value, as in InfluxDB: other types are rejected.
"""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from controlplane.metrics.line_protocol import FieldValue, Point, Rejected, Tags

NANOS_PER_MS = 1_000_000

DEFAULT_KEEP = {"engine": 86_400, "outputs": 200_000}
"""Newest points kept per series and field: a day of one-second figures; months of windows."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY, bucket TEXT NOT NULL, measurement TEXT NOT NULL, tags TEXT NOT NULL,
    UNIQUE (bucket, measurement, tags));
CREATE TABLE IF NOT EXISTS columns (
    id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL REFERENCES series, field TEXT NOT NULL,
    UNIQUE (series_id, field));
CREATE TABLE IF NOT EXISTS field_types (
    bucket TEXT NOT NULL, measurement TEXT NOT NULL, field TEXT NOT NULL, type TEXT NOT NULL,
    PRIMARY KEY (bucket, measurement, field)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS points (
    column_id INTEGER NOT NULL, time_ns INTEGER NOT NULL, value NOT NULL,
    PRIMARY KEY (column_id, time_ns)) WITHOUT ROWID;
"""

_TYPES = {bool: "boolean", int: "integer", float: "float", str: "string"}


class Aggregate(StrEnum):
    """How the points of one step become one."""

    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"
    LAST = "last"


_AGGREGATE_SQL = {
    Aggregate.MEAN: "avg(value)",
    Aggregate.MIN: "min(value)",
    Aggregate.MAX: "max(value)",
    Aggregate.SUM: "sum(value)",
    Aggregate.COUNT: "count(value)",
    Aggregate.LAST: "value",
}


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one tag set, as (epoch ms, value)."""

    tags: Mapping[str, str]
    points: list[tuple[float, FieldValue]]


class SeriesStore:
    """The store at one path; safe to share between threads."""

    def __init__(self, path: Path, keep: Mapping[str, int] = DEFAULT_KEEP) -> None:
        self.path = path
        self._keep = dict(keep)
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._write_lock = threading.Lock()
        self._columns: dict[tuple[str, str, Tags, str], int] = {}
        self._types: dict[tuple[str, str, str], str] = {}
        self._written: dict[tuple[str, int], int] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._connection() as connection:
            connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the connections that are not in use."""
        while not self._idle.empty():
            self._idle.get_nowait().close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = sqlite3.connect(
                self.path, timeout=10, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        try:
            yield connection
        finally:
            self._idle.put(connection)

    # ---- writing

    def write(self, bucket: str, points: Sequence[Point]) -> list[tuple[int, str]]:
        """Keep the points; return (index, reason) for each that could not be kept."""
        refused: list[tuple[int, str]] = []
        with self._transaction() as connection:
            rows = self._rows(connection, bucket, points, refused)
            connection.executemany("INSERT OR REPLACE INTO points VALUES (?, ?, ?)", rows)
            self._forget_old(connection, bucket, rows)
        return refused

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit at the end, or roll back."""
        with self._write_lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                # What the transaction added is gone, so the ids of it must not be remembered.
                self._columns.clear()
                self._types.clear()
                raise

    def _rows(
        self,
        connection: sqlite3.Connection,
        bucket: str,
        points: Sequence[Point],
        refused: list[tuple[int, str]],
    ) -> list[tuple[int, int, FieldValue]]:
        rows: list[tuple[int, int, FieldValue]] = []
        for index, point in enumerate(points):
            if reason := self._type_conflict(connection, bucket, point):
                refused.append((index, reason))
                continue
            for field, value in point.fields:
                rows.append((self._column(connection, bucket, point, field), point.time_ns, value))
        return rows

    def _type_conflict(
        self, connection: sqlite3.Connection, bucket: str, point: Point
    ) -> str | None:
        """Why the point does not fit what was written before; its new fields are taken on."""
        for field, value in point.fields:
            key = (bucket, point.measurement, field)
            given = _TYPES[type(value)]
            if key not in self._types:
                connection.execute(
                    "INSERT OR IGNORE INTO field_types VALUES (?, ?, ?, ?)", (*key, given)
                )
                self._types[key] = connection.execute(
                    "SELECT type FROM field_types"
                    " WHERE bucket = ? AND measurement = ? AND field = ?",
                    key,
                ).fetchone()[0]
            if self._types[key] != given:
                return f"field {field!r} is of type {self._types[key]}: got {given}"
        return None

    def _column(self, connection: sqlite3.Connection, bucket: str, point: Point, field: str) -> int:
        key = (bucket, point.measurement, point.tags, field)
        if key not in self._columns:
            series = (bucket, point.measurement, json.dumps(point.tags, ensure_ascii=False))
            connection.execute(
                "INSERT OR IGNORE INTO series (bucket, measurement, tags) VALUES (?, ?, ?)", series
            )
            (series_id,) = connection.execute(
                "SELECT id FROM series WHERE bucket = ? AND measurement = ? AND tags = ?", series
            ).fetchone()
            connection.execute(
                "INSERT OR IGNORE INTO columns (series_id, field) VALUES (?, ?)", (series_id, field)
            )
            (self._columns[key],) = connection.execute(
                "SELECT id FROM columns WHERE series_id = ? AND field = ?", (series_id, field)
            ).fetchone()
        return self._columns[key]

    def _forget_old(
        self,
        connection: sqlite3.Connection,
        bucket: str,
        rows: list[tuple[int, int, FieldValue]],
    ) -> None:
        """Cut a column back once it has grown by a tenth of what is kept."""
        keep = self._keep.get(bucket)
        if keep is None:
            return
        for column, _, _ in rows:
            at = (bucket, column)
            self._written[at] = self._written.get(at, 0) + 1
            if self._written[at] <= keep // 10:
                continue
            self._written[at] = 0
            connection.execute(
                "DELETE FROM points WHERE column_id = ? AND time_ns <= (SELECT time_ns FROM points"
                " WHERE column_id = ? ORDER BY time_ns DESC LIMIT 1 OFFSET ?)",
                (column, column, keep),
            )

    def drop_before(self, bucket: str, time_ms: float) -> None:
        """Forget points of a bucket that are older, and series that have none left.

        For buckets on the wall clock: the event time of outputs says nothing about their age.
        """
        with self._transaction() as connection:
            columns = connection.execute(
                "SELECT columns.id FROM columns JOIN series ON series_id = series.id"
                " WHERE bucket = ?",
                (bucket,),
            ).fetchall()
            connection.executemany(
                "DELETE FROM points WHERE column_id = ? AND time_ns < ?",
                [(column, _ns(time_ms, 0)) for (column,) in columns],
            )
            connection.executemany(
                "DELETE FROM columns WHERE id = ?"
                " AND NOT EXISTS (SELECT 1 FROM points WHERE column_id = columns.id)",
                columns,
            )
            connection.execute(
                "DELETE FROM series WHERE bucket = ?"
                " AND NOT EXISTS (SELECT 1 FROM columns WHERE series_id = series.id)",
                (bucket,),
            )
            self._columns.clear()

    # ---- reading

    def query(
        self,
        bucket: str,
        measurement: str,
        field: str,
        *,
        where: Mapping[str, str | Sequence[str]] | None = None,
        start_ms: float | None = None,
        stop_ms: float | None = None,
        step_ms: int | None = None,
        aggregate: Aggregate | str = Aggregate.MEAN,
        limit: int = 5_000,
    ) -> list[Series]:
        """One series per tag set, over [start, stop); the newest `limit` points of each.

        `where` keeps the series whose tag has that value, or one of those. With `step_ms`, the
        points of each [n * step, (n + 1) * step) become one, at the start of the step.
        """
        low = _ns(start_ms, -(2**63))
        high = _ns(stop_ms, 2**63 - 1)
        sql = _query_sql(step_ms, Aggregate(aggregate))
        step_ns = (step_ms or 0) * NANOS_PER_MS
        found = []
        with self._connection() as connection:
            for tags, column in self._matching(connection, bucket, measurement, field, where or {}):
                rows = connection.execute(
                    sql,
                    {"column": column, "low": low, "high": high, "step": step_ns, "limit": limit},
                ).fetchall()
                if rows:
                    points = [(_ms(time_ns), value) for time_ns, value in reversed(rows)]
                    found.append(Series(tags, points))
        return found

    def _matching(
        self,
        connection: sqlite3.Connection,
        bucket: str,
        measurement: str,
        field: str,
        where: Mapping[str, str | Sequence[str]],
    ) -> Iterator[tuple[dict[str, str], int]]:
        wanted = {key: {one} if isinstance(one, str) else set(one) for key, one in where.items()}
        rows = connection.execute(
            "SELECT series.tags, columns.id FROM series JOIN columns ON series_id = series.id"
            " WHERE bucket = ? AND measurement = ? AND field = ?",
            (bucket, measurement, field),
        ).fetchall()
        for pairs, column in sorted((json.loads(raw), column) for raw, column in rows):
            tags = dict(pairs)
            if all(tags.get(key) in values for key, values in wanted.items()):
                yield tags, column

    def measurements(self, bucket: str) -> list[str]:
        """What has been written to."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT DISTINCT measurement FROM series WHERE bucket = ? ORDER BY 1", (bucket,)
            )
            return [name for (name,) in rows]

    def fields(self, bucket: str, measurement: str) -> dict[str, str]:
        """Its fields and their types: float, integer, boolean, string."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT field, type FROM field_types WHERE bucket = ? AND measurement = ?"
                " ORDER BY field",
                (bucket, measurement),
            )
            return dict(rows.fetchall())

    def tag_sets(self, bucket: str, measurement: str) -> list[dict[str, str]]:
        """The tag sets of its series."""
        with self._connection() as connection:
            rows = connection.execute(
                "SELECT tags FROM series WHERE bucket = ? AND measurement = ?",
                (bucket, measurement),
            )
            return [dict(pairs) for pairs in sorted(json.loads(raw) for (raw,) in rows)]

    def span_ms(self, bucket: str, measurement: str) -> tuple[float, float] | None:
        """Times of its first and last point."""
        with self._connection() as connection:
            # A subquery per column: each is one step at the end of the primary key.
            low, high = connection.execute(
                "SELECT min(low), max(high) FROM (SELECT"
                " (SELECT min(time_ns) FROM points WHERE column_id = columns.id) AS low,"
                " (SELECT max(time_ns) FROM points WHERE column_id = columns.id) AS high"
                " FROM columns JOIN series ON series_id = series.id"
                " WHERE bucket = ? AND measurement = ?)",
                (bucket, measurement),
            ).fetchone()
        return None if low is None else (_ms(low), _ms(high))


def rejections(
    refused: list[tuple[int, str]], points: Sequence[Point], lines: Sequence[int]
) -> list[Rejected]:
    """What the store refused, told by the lines it came from."""
    return [Rejected(lines[index], why, points[index].measurement) for index, why in refused]


def _query_sql(step_ms: int | None, aggregate: Aggregate) -> str:
    """Newest first, so that `limit` cuts the oldest."""
    source = "FROM points WHERE column_id = :column AND time_ns >= :low AND time_ns < :high"
    if not step_ms:
        return f"SELECT time_ns, value {source} ORDER BY time_ns DESC LIMIT :limit"
    # SQLite's % keeps the sign: shift it, so that steps before 1970 are half-open too.
    step = "time_ns - ((time_ns % :step) + :step) % :step AS step"
    value = _AGGREGATE_SQL[aggregate]
    # max(time_ns) makes SQLite take the bare `value` of LAST from the newest row of the group.
    return (
        f"SELECT step, value FROM (SELECT {step}, {value} AS value, max(time_ns) {source}"  # noqa: S608
        " GROUP BY step) ORDER BY step DESC LIMIT :limit"
    )


def _ns(time_ms: float | None, otherwise: int) -> int:
    return otherwise if time_ms is None else int(time_ms * NANOS_PER_MS)


def _ms(time_ns: int) -> float:
    whole, rest = divmod(time_ns, NANOS_PER_MS)
    return whole if rest == 0 else time_ns / NANOS_PER_MS
