"""Points of one measurement in the place of another's, in the embedded series store.

    keep      target ──from the first point of `beside` on──copy──▶ to
    replace   target: nothing from there on but what `source` has

Guarantee  each can be done again. Points are of whole microseconds, as sinks write them.
Needs      that nobody writes to the target meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.line_protocol import FieldValue, Point

CHUNK = 5_000
EVERY_POINT = 10_000_000
"""More than the store keeps of one series."""

_TYPES = {"boolean": bool, "integer": int, "float": float, "string": str}


def first_ms(store: SeriesStore, bucket: str, measurement: str) -> float | None:
    """Time of the first point; None when there is none."""
    span = store.span_ms(bucket, measurement)
    return None if span is None else span[0]


def keep(store: SeriesStore, bucket: str, target: str, since_ms: float, to: str) -> None:
    """Copy the points of a measurement from a time on to another."""
    _write(store, bucket, _points(store, bucket, target, to, since_ms))


def replace(store: SeriesStore, bucket: str, target: str, since_ms: float, source: str) -> None:
    """Let a measurement have from a time on what another has, and nothing else."""
    store.remove(bucket, target, since_ms)
    _write(store, bucket, _points(store, bucket, source, target, since_ms))


def _points(
    store: SeriesStore, bucket: str, source: str, to: str, since_ms: float
) -> Iterator[Point]:
    """The points of a measurement, under another name."""
    fields: dict[tuple[tuple[tuple[str, str], ...], int], list[tuple[str, FieldValue]]]
    fields = defaultdict(list)
    for field, kind in store.fields(bucket, source).items():
        as_written = _TYPES[kind]
        found = store.query(bucket, source, field, start_ms=since_ms, limit=EVERY_POINT)
        for one in found:
            tags = tuple(sorted(one.tags.items()))
            for at, value in one.points:
                fields[tags, round(at * 1_000) * 1_000].append((field, as_written(value)))
    for (tags, time_ns), values in sorted(fields.items()):
        yield Point(to, tags, tuple(values), time_ns)


def _write(store: SeriesStore, bucket: str, points: Iterator[Point]) -> None:
    chunk: list[Point] = []
    for point in points:
        chunk.append(point)
        if len(chunk) == CHUNK:
            store.write(bucket, chunk)
            chunk = []
    store.write(bucket, chunk)
