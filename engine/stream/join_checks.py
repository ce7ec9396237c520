"""What is checked of joins when the graph is built: streams, keys, columns, options.

Errors   GraphError for streams of two jobs or without event time, keys of different types, a column
         that both sides have, and options that make no sense.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from engine.durations import Duration, parse_duration, positive_duration
from engine.elements import EVENT_TIME, RESERVED_COLUMNS, Micros
from engine.errors import GraphError
from engine.operators.expressions import user_columns
from engine.operators.joins.join_sides import Side
from engine.state.values import UNFIT

if TYPE_CHECKING:
    from engine.stream.joined import KeyedJoins
    from engine.stream.stream import Stream


def checked_sides(
    step: str,
    left: KeyedJoins,
    right: KeyedJoins,
    suffix: str | None,
    taken: tuple[str, ...] = (),
) -> tuple[Side, Side]:
    """Both sides of a join. `taken`: names that the result needs for itself. Raises GraphError."""
    if not isinstance(right, type(left)):
        msg = f"{step} needs a keyed stream: got {right!r}; pass e.g. orders.key_by('user')"
        raise GraphError(msg)
    check_one_job(step, left.stream, right.stream)
    if list(left.key_types.values()) != list(right.key_types.values()):
        msg = (
            f"{step} needs keys of equal types: got {_typed(left.key_types)} and "
            f"{_typed(right.key_types)}; cast one of them"
        )
        raise GraphError(msg)
    for side, stream in (("left", left.stream), ("right", right.stream)):
        _check_columns(step, side, stream, taken)
    own = user_columns(left.stream.schema)
    names = _right_names(step, own, right, suffix, taken)
    mine = Side(left.keys, left.stream.schema, {each: each for each in own})
    return mine, Side(right.keys, right.stream.schema, names)


def check_one_job(step: str, one: Stream, other: Stream) -> None:
    """Refuse streams of two environments. Raises GraphError."""
    if one.env is not other.env:
        msg = f"{step} joins streams of two environments; build one job in one environment"
        raise GraphError(msg)


def _check_columns(step: str, side: str, stream: Stream, taken: tuple[str, ...]) -> None:
    if EVENT_TIME not in stream.schema:
        msg = (
            f"{step} needs event time, which the {side} stream does not have; pass watermarks=… to "
            "env.source, e.g. bounded_out_of_orderness('1s', 'time')"
        )
        raise GraphError(msg)
    clashes = [name for name in stream.schema if name in taken]
    if clashes:
        msg = (
            f"{step} makes the column {clashes[0]!r}, which the {side} stream has already; "
            "rename it before"
        )
        raise GraphError(msg)


def _right_names(
    step: str, left: list[str], right: KeyedJoins, suffix: str | None, taken: tuple[str, ...]
) -> Mapping[str, str]:
    """What the right side's columns are called in the result."""
    names: dict[str, str] = {}
    used = {*left, *taken, *RESERVED_COLUMNS}
    for column in user_columns(right.stream.schema):
        if column in right.keys:
            continue
        named = column if column not in used else f"{column}{suffix or ''}"
        if named in used:
            told = "" if suffix is None else f" as {named!r} with suffix {suffix!r}"
            msg = (
                f"{step} gets the column {column!r} from both streams{told}; pass another suffix, "
                "e.g. suffix='_right', or rename it before"
            )
            raise GraphError(msg)
        names[column] = named
        used.add(named)
    return names


def checked_how(step: str, how: str, known: list[str]) -> str:
    """Which rows are kept without a match. Raises GraphError."""
    if how not in known:
        msg = f"{step} does not know how to join: got how={how!r}; pass {', '.join(known)}"
        raise GraphError(msg)
    return how


def checked_bounds(lower: Duration, upper: Duration) -> tuple[Micros, Micros]:
    """The range of an interval join. Raises GraphError."""
    low, high = _signed(lower, "lower"), _signed(upper, "upper")
    if low > high:
        msg = (
            f"range of interval_join is empty: got lower={lower!r}, upper={upper!r}; pass e.g. "
            "lower='-5m', upper='1m'"
        )
        raise GraphError(msg)
    return low, high


def _signed(bound: Duration, name: str) -> Micros:
    """A length of time, which as text may begin with a minus."""
    subject = f"{name} of interval_join"
    if isinstance(bound, str) and bound.strip().startswith("-"):
        return Micros(-parse_duration(bound.strip()[1:], subject))
    return parse_duration(bound, subject)


def checked_defaults(
    right: Side, defaults: Mapping[str, object] | None, *, outer: bool
) -> pl.DataFrame | None:
    """What stands for a version that there is not, as a frame of one row. Raises GraphError."""
    if defaults is None:
        return None
    if not outer:
        msg = "temporal_join has defaults for rows that it leaves out; pass how='left' too"
        raise GraphError(msg)
    columns = []
    for column, value in defaults.items():
        if column not in right.columns:
            msg = (
                f"defaults of temporal_join name an unknown column: got {column!r}; the versions "
                f"have {', '.join(right.columns)}"
            )
            raise GraphError(msg)
        columns.append(_one(column, value, right.schema[column]))
    return pl.DataFrame(columns)


def _one(column: str, value: object, dtype: pl.DataType) -> pl.Series:
    try:
        return pl.Series(column, [value], dtype=dtype, strict=True)
    except UNFIT as error:
        msg = (
            f"default of column {column!r} does not fit its type: got {value!r} for {dtype}; pass "
            "a value of that type"
        )
        raise GraphError(msg) from error


def checked_ttl(ttl: Duration | None) -> Micros | None:
    """How long versions are valid. Raises GraphError."""
    return None if ttl is None else positive_duration(ttl, "ttl of versions", "ttl='1d'")


def _typed(keys: Mapping[str, pl.DataType]) -> str:
    return ", ".join(f"{name}: {dtype}" for name, dtype in keys.items())
