"""The comparison itself: two tables in, what differs out.

    old ─┐ a stretch of event time,        ┌─▶ per hour: equal, changed, only old, only new
         ├─ small enough for memory ──join─┤
    new ─┘        on the keys              └─▶ per kind of difference: rows, first, examples

Shapes   both tables have the key columns and the time; of the others those are compared that both
         have. Rows of one key on one side meet those of the other in the order of their values.
Units    the time of a row is µs since 1970 UTC; where it is the end of a window, the row belongs to
         the microsecond before.
Cost     tables are scanned, never read whole: at most `rows` rows of both at a time.

Pure: nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from controlplane.replay.comparison.found import (
    EXAMPLES,
    VERDICTS,
    Found,
    Group,
    Kind,
    Verdict,
    added_up,
)

ROWS_AT_A_TIME = 1_000_000
HOUR_US = 3_600_000_000
WINDOW_END = "window_end"

AT, TURN, OLD, NEW, FIELDS, VERDICT = "\0at", "\0turn", "\0old", "\0new", "\0fields", "\0verdict"
HOUR = "\0hour"
"""Columns of our own: names that no column of a job has."""
_HOUR = pl.col(AT) // HOUR_US * HOUR_US


@dataclass(frozen=True, slots=True)
class Terms:
    """How the rows of an output are compared."""

    keys: tuple[str, ...]
    """What tells rows apart."""
    time: str
    """The column of a row's time."""
    tolerance: Mapping[str, float] = field(default_factory=dict)
    """By how much a number may differ and still be equal, by column."""
    relative: Mapping[str, float] = field(default_factory=dict)
    """The same, as a part of the old value."""


def compare(
    old: pl.LazyFrame,
    new: pl.LazyFrame,
    terms: Terms,
    since_us: int,
    until_us: int,
    rows: int = ROWS_AT_A_TIME,
) -> Iterator[Found]:
    """Compare the rows of event time [since, until), part by part."""
    values = shared_values(old, new, terms)
    sides = _timed(old, terms, values), _timed(new, terms, values)
    for first, last in _parts(sides, since_us, until_us, rows):
        inside = pl.col(AT).is_between(first, last, closed="left")
        parts = [side.filter(inside).collect() for side in sides]
        yield _compared(parts[0], parts[1], terms, values)


def shared_values(old: pl.LazyFrame, new: pl.LazyFrame, terms: Terms) -> tuple[str, ...]:
    """The columns that are compared: those that both have, but for the keys and the time."""
    others = new.collect_schema()
    known = (*terms.keys, terms.time)
    return tuple(name for name in old.collect_schema() if name in others and name not in known)


def numbers(old: pl.LazyFrame, new: pl.LazyFrame, terms: Terms) -> list[str]:
    """The compared columns that are numbers on both sides."""
    types = old.collect_schema(), new.collect_schema()
    names = shared_values(old, new, terms)
    return [name for name in names if all(schema[name].is_numeric() for schema in types)]


def span(table: pl.LazyFrame, terms: Terms) -> tuple[int, int] | None:
    """The times of the oldest and the newest row; None when there is none."""
    times = table.select(event_time(terms))
    ends = times.select(pl.col(AT).min().alias("first"), pl.col(AT).max().alias("last"))
    first, last = ends.collect(engine="streaming").row(0)
    return None if first is None else (int(first), int(last))


def event_time(terms: Terms) -> pl.Expr:
    """A row's event time, µs."""
    column = pl.col(terms.time)
    micros = column.cast(pl.Datetime("us")).dt.epoch("us")
    return (micros - 1 if terms.time == WINDOW_END else micros).alias(AT)


def _timed(table: pl.LazyFrame, terms: Terms, values: Sequence[str]) -> pl.LazyFrame:
    return table.select(*terms.keys, *values, event_time(terms))


def _parts(
    sides: Sequence[pl.LazyFrame], since: int, until: int, rows: int
) -> Iterator[tuple[int, int]]:
    """Cut a stretch in halves until each has no more rows than fit."""
    if since >= until:
        return
    inside = pl.col(AT).is_between(since, until, closed="left")
    bounds = [pl.len().alias("n"), pl.col(AT).min().alias("lo"), pl.col(AT).max().alias("hi")]
    found = pl.concat(
        [side.filter(inside).select(bounds).collect(engine="streaming") for side in sides]
    )
    count, low, high = found["n"].sum(), found["lo"].min(), found["hi"].max()
    if not count:
        return
    first, last = int(low), int(high)  # type: ignore[arg-type]
    if count <= rows or first == last:
        yield first, last + 1
        return
    middle = (first + last) // 2 + 1
    yield from _parts(sides, first, middle, rows)
    yield from _parts(sides, middle, last + 1, rows)


def _compared(old: pl.DataFrame, new: pl.DataFrame, terms: Terms, values: Sequence[str]) -> Found:
    """Compare two tables that are in memory."""
    keys = [*terms.keys, AT]
    met = _in_turn(old, keys, values, OLD).join(
        _in_turn(new, keys, values, NEW),
        on=[*keys, TURN],
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix=NEW,
    )
    differing = [_differs(name, terms, met).alias(f"{FIELDS}{name}") for name in values]
    told = met.with_columns(differing).with_columns(_fields(values)).with_columns(_verdict())
    return Found(_hours(told), _differing(told, terms, values))


def _in_turn(
    table: pl.DataFrame, keys: Sequence[str], values: Sequence[str], side: str
) -> pl.DataFrame:
    """Number the rows of each key in the order of their values."""
    ordered = table.sort(values, nulls_last=True) if values else table
    turn = pl.int_range(pl.len()).over(keys).alias(TURN)
    return ordered.with_columns(turn, pl.lit(value=True).alias(side))


def _differs(name: str, terms: Terms, met: pl.DataFrame) -> pl.Expr:
    """Whether the two values of a column differ by more than is allowed."""
    old, new = pl.col(name), pl.col(f"{name}{NEW}")
    types = met.schema[name], met.schema[f"{name}{NEW}"]
    if types[0] != types[1] and not all(dtype.is_numeric() for dtype in types):
        old, new = old.cast(pl.String), new.cast(pl.String)
    unequal = old.ne_missing(new)
    absolute, relative = terms.tolerance.get(name), terms.relative.get(name)
    if absolute is relative is None or not all(dtype.is_numeric() for dtype in types):
        return unequal
    before, after = old.cast(pl.Float64), new.cast(pl.Float64)
    apart, allowed = (before - after).abs(), (relative or 0.0) * before.abs() + (absolute or 0.0)
    # To NaN everything is at most NaN.
    near = (apart <= allowed) & apart.is_finite()
    return unequal & ~near.fill_null(value=False)


def _fields(values: Sequence[str]) -> pl.Expr:
    """The names of the columns that differ, one a line."""
    if not values:
        return pl.lit("").alias(FIELDS)
    names = [pl.when(pl.col(f"{FIELDS}{name}")).then(pl.lit(name)) for name in values]
    return pl.concat_str(names, separator="\n", ignore_nulls=True).alias(FIELDS)


def _verdict() -> pl.Expr:
    return (
        pl.when(pl.col(NEW).is_null())
        .then(pl.lit(Verdict.ONLY_OLD.value))
        .when(pl.col(OLD).is_null())
        .then(pl.lit(Verdict.ONLY_NEW.value))
        .when(pl.col(FIELDS) != "")
        .then(pl.lit(Verdict.CHANGED.value))
        .otherwise(pl.lit(Verdict.EQUAL.value))
        .alias(VERDICT)
    )


def _hours(told: pl.DataFrame) -> Mapping[int, tuple[int, int, int, int]]:
    counted = told.group_by(_HOUR).agg(
        (pl.col(VERDICT) == verdict.value).sum().alias(verdict) for verdict in VERDICTS
    )
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in counted.iter_rows()}


def _differing(
    told: pl.DataFrame, terms: Terms, values: Sequence[str]
) -> Mapping[int, Mapping[Kind, Group]]:
    unequal = told.filter(pl.col(VERDICT) != Verdict.EQUAL.value)
    changed = pl.col(VERDICT) == Verdict.CHANGED.value
    named = unequal.with_columns(pl.when(changed).then(FIELDS).otherwise(pl.lit("")).alias(FIELDS))
    hours: dict[int, dict[Kind, Group]] = {}
    for (hour, verdict, fields), rows in named.group_by(_HOUR.alias(HOUR), VERDICT, FIELDS):
        kind = Verdict(str(verdict)), tuple(str(fields).split("\n")) if fields else ()
        hours.setdefault(int(hour), {})[kind] = _group(rows, kind, terms, values)
    return {hour: added_up([groups]) for hour, groups in hours.items()}


def _group(rows: pl.DataFrame, kind: Kind, terms: Terms, values: Sequence[str]) -> Group:
    ordered = rows.sort(AT, *terms.keys, TURN, nulls_last=True).head(EXAMPLES)
    fields = kind[1] or values
    examples = tuple(_example(row, terms, fields, kind[0]) for row in ordered.to_dicts())
    return Group(rows.height, int(rows[AT].min()), examples)  # type: ignore[arg-type]


def _example(
    row: Mapping[str, Any], terms: Terms, fields: Sequence[str], verdict: Verdict
) -> dict[str, Any]:
    old = {name: row[name] for name in fields}
    new = {name: row[f"{name}{NEW}"] for name in fields}
    return {
        "at": row[AT],
        "keys": {name: row[name] for name in terms.keys},
        "old": None if verdict is Verdict.ONLY_NEW else old,
        "new": None if verdict is Verdict.ONLY_OLD else new,
    }
