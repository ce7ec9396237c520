"""What is checked of steps on columns when the graph is built, and the columns that they give.

Errors   GraphError, one sentence each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.elements import EVENT_TIME
from engine.errors import GraphError
from engine.operators.columns.map_batches import FrameFunction, called
from engine.operators.contract import MAIN
from engine.operators.expressions import Schema, check_columns, infer, user_columns


def check_predicate(schema: Schema, predicate: pl.Expr, step: str) -> None:
    """Refuse what is not one true or false per row."""
    given = list(infer(schema, [predicate], step).values())
    if given != [pl.Boolean()]:
        types = ", ".join(map(str, given))
        msg = f"{step} needs one true or false per row: got {types}; compare with something"
        raise GraphError(msg)


def check_sides(schema: Schema, sides: Mapping[str, pl.Expr]) -> None:
    """Refuse side outputs that a split cannot have."""
    if not sides or not isinstance(sides, Mapping):
        msg = (
            f"split needs predicates by the name of their side output: got {sides!r}; "
            "pass e.g. {'big': pl.col('amount') > 1000}"
        )
        raise GraphError(msg)
    for tag, predicate in sides.items():
        if tag == MAIN or not tag.strip():
            msg = f"split cannot have a side output {tag!r}; choose another name"
            raise GraphError(msg)
        check_predicate(schema, predicate, f"split to {tag!r}")


def renamed(schema: Schema, names: Mapping[str, str]) -> list[str]:
    """The columns of a stream whose columns got other names."""
    check_columns(schema, list(names), "rename")
    if EVENT_TIME in names:
        msg = f"rename names the reserved column {EVENT_TIME!r}; copy it with with_columns(…)"
        raise GraphError(msg)
    made = [names.get(column, column) for column in user_columns(schema)]
    if twice := sorted({column for column in made if made.count(column) > 1}):
        msg = f"rename makes two columns of one name: got {', '.join(twice)}; choose others"
        raise GraphError(msg)
    return made


def exploded(schema: Schema, columns: Sequence[str]) -> Schema:
    """The columns of a stream whose lists were taken apart."""
    if not columns:
        msg = "explode names no column; pass the name of a column of lists"
        raise GraphError(msg)
    check_columns(schema, columns, "explode")
    made = dict(schema)
    for column in columns:
        dtype = schema[column]
        if not isinstance(dtype, pl.List | pl.Array):
            msg = f"explode needs lists: column {column!r} is {dtype}; name a column of lists"
            raise GraphError(msg)
        made[column] = pl.DataFrame(schema={column: dtype}).explode(column).schema[column]
    return made


def tried(schema: Schema, function: FrameFunction, label: str) -> Schema:
    """The columns that a frame function gives for an empty frame."""
    try:
        made = dict(called(function, pl.DataFrame(schema=schema)).schema)
    except Exception as error:
        msg = (
            f"map_batches {label!r} failed on an empty frame: {type(error).__name__}: {error}; "
            "pass schema={…}"
        )
        raise GraphError(msg) from error
    return {**made, EVENT_TIME: schema[EVENT_TIME]} if EVENT_TIME in schema else made
