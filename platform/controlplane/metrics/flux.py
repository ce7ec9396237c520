"""Flux: the few queries that charts need, as text, and the table that comes back, as series.

    from(bucket) |> range |> filter(measurement, field, tags) |> aggregateWindow |> tail

Shapes   answers are annotated CSV: a block of annotations and a header wherever columns change.
Source   InfluxDB 2 API, `/api/v2/query`; Flux language specification, string literals.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from controlplane.metrics.contract import Aggregate, Where
from controlplane.metrics.line_protocol import FieldValue

FIRST_NS, LAST_NS = -9_223_372_036_854_775_806, 9_223_372_036_854_775_806
"""The ends of what InfluxDB can store."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_FLUX = ("result", "table", "_start", "_stop", "_time", "_value", "_field", "_measurement", "")
_TYPES = {"double": "float", "long": "integer", "boolean": "boolean", "string": "string"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an answer."""

    measurement: str
    field: str
    tags: tuple[tuple[str, str], ...]
    time_ns: int
    value: FieldValue
    kind: str
    """float, integer, boolean or string."""


def points(
    bucket: str,
    measurement: str,
    field: str,
    where: Where,
    low_ns: int,
    high_ns: int,
    step_ms: int | None,
    aggregate: Aggregate,
    limit: int,
) -> str:
    """The points of one field."""
    wanted = [f"r._field == {text(field)}", *_wanted(where)]
    query = f"{_of(bucket, measurement, low_ns, high_ns)}{_filter(wanted)}"
    if step_ms:
        query += (
            f"\n  |> aggregateWindow(every: {step_ms}ms, fn: {aggregate}, createEmpty: false,"
            ' timeSrc: "_start")'
        )
    return f"{query}\n  |> tail(n: {limit})"


def ends(bucket: str, measurement: str | None, which: str) -> str:
    """The first or the last point of every field of every series."""
    query = _of(bucket, measurement, FIRST_NS, LAST_NS)
    return f"{query}\n  |> {which}()"


def text(value: str) -> str:
    r"""A string literal.

    >>> print(text('a "b" \\ ${c}'))
    "a \"b\" \\ \${c}"
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("${", "\\${")
    return '"' + escaped.replace("\n", "\\n") + '"'


def _of(bucket: str, measurement: str | None, low_ns: int, high_ns: int) -> str:
    low, high = max(low_ns, FIRST_NS), min(high_ns, LAST_NS)
    span = f"range(start: time(v: {low}), stop: time(v: {high}))"
    wanted = [] if measurement is None else [f"r._measurement == {text(measurement)}"]
    return f"from(bucket: {text(bucket)})\n  |> {span}{_filter(wanted)}"


def _filter(wanted: Sequence[str]) -> str:
    return f"\n  |> filter(fn: (r) => {' and '.join(wanted)})" if wanted else ""


def _wanted(where: Where) -> Iterator[str]:
    for tag, one in where.items():
        values = [one] if isinstance(one, str) else list(one)
        either = " or ".join(f"r[{text(tag)}] == {text(value)}" for value in values)
        yield f"({either or 'false'})"


def rows(lines: Iterable[str]) -> Iterator[Row]:
    """Read an answer."""
    kinds: Sequence[str] = ()
    groups: Sequence[str] = ()
    header: Sequence[str] | None = None
    for cells in csv.reader(lines):
        match cells:
            case []:
                continue
            case ["#datatype", *kinds]:
                header = None
            case ["#group", *groups]:
                header = None
            case [first, *_] if first.startswith("#"):
                header = None
            case [_, *header_] if header is None:
                header = header_
            case [_, *values]:
                yield _row(values, header or (), kinds, groups)


def _row(
    values: Sequence[str], header: Sequence[str], kinds: Sequence[str], groups: Sequence[str]
) -> Row:
    cells = dict(zip(header, values, strict=False))
    of_column = dict(zip(header, kinds, strict=False))
    kind = _TYPES[of_column["_value"]]
    tags = tuple(
        (name, cells[name])
        for name, group in zip(header, groups, strict=False)
        if group == "true" and name not in _OF_FLUX
    )
    return Row(
        cells.get("_measurement", ""),
        cells.get("_field", ""),
        tuple(sorted(tags)),
        nanos(cells["_time"]) if "_time" in cells else 0,
        _value(kind, cells["_value"]),
        kind,
    )


def _value(kind: str, raw: str) -> FieldValue:
    match kind:
        case "float":
            return float(raw)
        case "integer":
            return int(raw)
        case "boolean":
            return raw == "true"
        case _:
            return raw


def nanos(moment: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time.

    >>> nanos("1970-01-01T00:00:01.000000007Z"), nanos("1969-12-31T23:59:59Z")
    (1000000007, -1000000000)
    """
    whole, _, fraction = moment.removesuffix("Z").partition(".")
    seconds = datetime.fromisoformat(f"{whole}+00:00") - _EPOCH
    return (seconds.days * 86_400 + seconds.seconds) * 10**9 + int(fraction.ljust(9, "0") or 0)
