r"""Rows as line protocol, and counts of what it cannot say as it is.

    frame --one expression--> measurement,tag=value… field=value,… time

Rules    a field that is null, NaN, infinite, or whole and beyond 64 bits is left out; a row without
         any field, or without a time, is no point. A tag that is null or empty is left out, which
         InfluxDB takes for the same. In a tag a line break becomes `\n`, a last backslash `∖`.
Counted  each of these but a tag that is left out, and points that take the place of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import polars as pl

from engine.errors import ConfigError

FIELDS = "\0fields"
"""The column of joined fields while lines are made: a name that no column of a job has."""

MOST_KNOWN = 50_000
"""Points whose identity is known at least: some 5 MB."""


class Named(Protocol):
    """What columns are in a point."""

    measurement: str
    tags: tuple[str, ...]
    fields: tuple[str, ...]
    time: str


class RecentPoints:
    """Identities of the last points of a subtask, to see which of them take the place of another.

    In two generations: when the younger one is full, the older one is forgotten.
    """

    def __init__(self) -> None:
        self._young: set[int] = set()
        self._old: set[int] = set()

    def collided(self, identities: pl.Series) -> int:
        """How many are there already, in these or among the last ones; know these too."""
        given = set(identities.hash().to_list())
        known = len(given & self._young) + len((given - self._young) & self._old)
        self._young |= given
        if len(self._young) > MOST_KNOWN:
            self._young, self._old = set(), self._young
        return len(identities) - len(given) + known


def points(
    frame: pl.DataFrame, named: Named, recent: RecentPoints
) -> tuple[list[str], dict[str, int]]:
    """Return line protocol for the rows, and counts of what is not in it as it was.

    >>> from engine.connectors.influx import InfluxSink
    >>> sink = InfluxSink("daily", tags=["origin"], fields=["flights", "delay"])
    >>> rows = {"origin": ["JFK"], "flights": [2], "delay": [0.5], "event_time": [7]}
    >>> points(pl.DataFrame(rows), sink, RecentPoints())
    (['daily,origin=JFK flights=2i,delay=0.5 7'], {})
    """
    _check_columns(frame, named)
    fields = frame.select(_field(name, frame.schema[name]) for name in named.fields)
    joined = fields.select(pl.concat_str(pl.all(), separator=",", ignore_nulls=True))
    series = (pl.lit(_escaped_name(named.measurement)), *(_tag(name) for name in named.tags))
    parts = frame.select(
        joined.to_series().alias(FIELDS),
        series=pl.concat_str(*series),
        time=_time(frame, named.time),
    )
    timed = parts.filter(pl.col("time").is_not_null())
    said = timed.filter(pl.col(FIELDS) != "")
    lines = said.select(pl.concat_str("series", FIELDS, "time", separator=" ")).to_series()
    identities = said.select(pl.concat_str("series", "time", separator=" ")).to_series()
    flaws = {
        "fieldsLeftOut": sum(fields.null_count().row(0)),
        "tagsChanged": _changed_tags(frame, named.tags),
        "pointsWithoutTime": parts.height - timed.height,
        "pointsCollided": recent.collided(identities),
    }
    return lines.to_list(), {name: number for name, number in flaws.items() if number}


def _check_columns(frame: pl.DataFrame, named: Named) -> None:
    wanted = (*named.tags, *named.fields, named.time)
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        msg = (
            f"measurement '{named.measurement}' needs columns that are not there: "
            f"{', '.join(missing)}; rows have {', '.join(frame.columns)}"
        )
        raise ConfigError(msg)


def _changed_tags(frame: pl.DataFrame, tags: Sequence[str]) -> int:
    """How many values of tags the protocol cannot say as they are."""
    unsayable = [pl.col(tag).cast(pl.String).str.contains(r"\n|\\$").sum() for tag in tags]
    return sum(frame.select(unsayable).row(0)) if tags else 0


def _field(name: str, dtype: pl.DataType) -> pl.Expr:
    """`name=value`, or null when the value cannot be stored."""
    column = pl.col(name)
    if dtype.is_integer():
        value = column.cast(pl.Int64, strict=False).cast(pl.String) + "i"
    elif dtype.is_numeric():
        number = column.cast(pl.Float64)
        value = pl.when(number.is_finite()).then(number.cast(pl.String))
    elif dtype == pl.Boolean:
        value = column.cast(pl.String)
    else:
        text = column.cast(pl.String).str.replace_all("\\", "\\\\", literal=True)
        value = pl.lit('"') + text.str.replace_all('"', '\\"', literal=True) + '"'
    return (pl.lit(f"{_escaped_key(name)}=") + value).alias(name)


def _tag(name: str) -> pl.Expr:
    """`,name=value`; a tag that is null or empty is left out, as the protocol wants."""
    value = pl.col(name).cast(pl.String)
    for character in (",", "=", " "):
        value = value.str.replace_all(character, f"\\{character}", literal=True)
    value = value.str.replace_all("\n", "\\n", literal=True).str.replace(r"\\$", "∖")
    pair = pl.lit(f",{_escaped_key(name)}=") + value
    return pl.when(value != "").then(pair).otherwise(pl.lit(""))


def _time(frame: pl.DataFrame, name: str) -> pl.Expr:
    dtype = frame.schema[name]
    column = pl.col(name)
    micros = column if dtype.is_integer() else column.cast(pl.Datetime("us")).dt.epoch("us")
    return micros.cast(pl.String)


def _escaped_name(text: str) -> str:
    return text.replace(",", "\\,").replace(" ", "\\ ")


def _escaped_key(text: str) -> str:
    return _escaped_name(text).replace("=", "\\=")
