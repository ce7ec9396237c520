"""Types of state columns as text, for plans and manifests, and back.

Shapes   a type reads as Polars writes it: Int64, Float64, String, Datetime(us, UTC), List(Int64).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta

import polars as pl

from engine.elements import KEY_GROUP
from engine.errors import GraphError
from engine.state.contract import SLICE_END, StateDescriptor, StateKind

_SIMPLE: Mapping[str, pl.DataType] = {
    str(dtype): dtype
    for dtype in (
        pl.Int8(),
        pl.Int16(),
        pl.Int32(),
        pl.Int64(),
        pl.UInt8(),
        pl.UInt16(),
        pl.UInt32(),
        pl.UInt64(),
        pl.Float32(),
        pl.Float64(),
        pl.Boolean(),
        pl.String(),
        pl.Binary(),
        pl.Date(),
        pl.Time(),
    )
}
_PYTHON: Mapping[object, pl.DataType] = {
    int: pl.Int64(),
    float: pl.Float64(),
    str: pl.String(),
    bool: pl.Boolean(),
    bytes: pl.Binary(),
    date: pl.Date(),
    datetime: pl.Datetime("us", "UTC"),
    timedelta: pl.Duration("us"),
}
_PARAMETERS = re.compile(r"(Datetime|Duration|List)\((.*)\)")

TypeLike = type[object] | pl.DataType | type[pl.DataType]
"""How authors write a type: `float`, `pl.Float64` or `pl.Float64()`."""


def type_name(dtype: pl.DataType) -> str:
    """Write a type as text.

    >>> type_name(pl.Datetime("us", "UTC")), type_name(pl.List(pl.Int64))
    ('Datetime(us, UTC)', 'List(Int64)')
    """
    if isinstance(dtype, pl.Datetime):
        zone = f", {dtype.time_zone}" if dtype.time_zone else ""
        return f"Datetime({dtype.time_unit}{zone})"
    if isinstance(dtype, pl.Duration):
        return f"Duration({dtype.time_unit})"
    if isinstance(dtype, pl.List):
        return f"List({type_name(as_type(dtype.inner))})"
    return str(dtype)


def type_named(name: str) -> pl.DataType:
    """Read a type that `type_name` wrote. Raises GraphError.

    >>> type_named("Datetime(us, UTC)")
    Datetime(time_unit='us', time_zone='UTC')
    """
    if name in _SIMPLE:
        return _SIMPLE[name]
    match = _PARAMETERS.fullmatch(name)
    if match is None:
        msg = f"type of a state column is unknown: got {name!r}; use {', '.join(_SIMPLE)}"
        raise GraphError(msg)
    if match[1] == "List":
        return pl.List(type_named(match[2]))
    unit, _, zone = match[2].partition(", ")
    # The unit was written by `type_name`; Polars refuses any other.
    if match[1] == "Datetime":
        return pl.Datetime(unit, zone or None)  # type: ignore[arg-type]
    return pl.Duration(unit)  # type: ignore[arg-type]


def as_type(given: object) -> pl.DataType:
    """The Polars type of what an author wrote. Raises GraphError.

    >>> as_type(float), as_type(pl.Int32)
    (Float64, Int32)
    """
    if isinstance(given, pl.DataType):
        return given
    if isinstance(given, type) and issubclass(given, pl.DataType):
        return given()
    if given in _PYTHON:
        return _PYTHON[given]
    msg = f"column type is unknown: got {given!r}; use int, float, str, bool or a Polars type"
    raise GraphError(msg)


def table_schema(descriptor: StateDescriptor) -> dict[str, pl.DataType]:
    """Columns and types of the canonical table of a state."""
    slices = {SLICE_END: pl.Int64()} if descriptor.kind is StateKind.RUNS else {}
    return {KEY_GROUP: pl.UInt16(), **descriptor.keys, **slices, **descriptor.values}
