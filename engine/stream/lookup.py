"""Tables that streams look rows up in: files and functions, checked when the graph is built.

Shapes   a file ends in .parquet or .csv; its columns are what it has when the graph is built.
Errors   GraphError for a table that cannot be read or does not fit the stream; SourceError when a
         file cannot be read later, so that the job starts again with back-off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from engine.durations import Duration, positive_duration
from engine.elements import RESERVED_COLUMNS
from engine.errors import GraphError, SourceError
from engine.operators.expressions import Schema, check_columns, raised, user_columns
from engine.operators.joins.lookup_join import LookupJoin, LookupTable
from engine.state.schema import TypeLike, as_type
from engine.stream.join_checks import checked_how
from engine.stream.record_steps import label_of

Table = str | Path | Callable[[], pl.DataFrame]
"""A file, or a function that gives a frame."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """Reads a file as what it was when the graph was built."""

    path: Path
    schema: Schema

    def __call__(self) -> pl.DataFrame:
        """Read it now. Raises SourceError."""
        try:
            if self.path.suffix == ".csv":
                return pl.read_csv(self.path, schema_overrides=dict(self.schema))
            return pl.read_parquet(self.path)
        except (OSError, pl.exceptions.PolarsError) as error:
            msg = f"table {self.path} cannot be read: {error}; put it back, or give it its columns"
            raise SourceError(msg) from error


def checked_lookup(
    stream: Schema,
    table: Table,
    on: str | Sequence[str] | Mapping[str, str],
    every: Duration,
    how: str,
    schema: Mapping[str, TypeLike] | None,
    suffix: str | None,
) -> tuple[LookupJoin, dict[str, pl.DataType]]:
    """The operator, and the columns of what it gives. Raises GraphError."""
    outer = checked_how("lookup_join", how, ["inner", "left"]) == "left"
    period = positive_duration(every, "every of lookup_join", "every='10m'")
    label, read, columns = _opened(table, schema)
    pairs = _pairs(on)
    _check_pairs(stream, columns, pairs, label)
    theirs = set(pairs.values())
    names = {right: left for left, right in pairs.items()}
    for column in columns:
        if column not in theirs:
            names[column] = _named(column, stream, names, suffix)
    made = LookupTable(label, read, columns, names)
    added = {names[column]: dtype for column, dtype in columns.items() if column not in theirs}
    times = {name: stream[name] for name in stream if name in RESERVED_COLUMNS}
    mine = {name: stream[name] for name in user_columns(stream)}
    result = {**mine, **added, **times}
    return LookupJoin(made, list(pairs), period, result, outer=outer), result


def _opened(
    table: Table, schema: Mapping[str, TypeLike] | None
) -> tuple[str, Callable[[], pl.DataFrame], Schema]:
    """What people call the table, how to read it, and its columns."""
    if isinstance(table, str | Path):
        path = Path(table).absolute()
        columns = _file_columns(path)
        return str(table), FileTable(path, columns), columns
    label = repr(label_of(table))
    if schema is not None:
        return label, table, {name: as_type(dtype) for name, dtype in schema.items()}
    try:
        return label, table, dict(table().schema)
    except Exception as error:
        msg = f"table {label} {raised(error)}: its columns are not known; pass schema={{…}}"
        raise GraphError(msg) from error


def _file_columns(path: Path) -> Schema:
    if path.suffix not in (".csv", ".parquet"):
        msg = (
            f"table {path} is of no known kind: got {path.suffix!r}; pass .parquet, .csv or a "
            "function"
        )
        raise GraphError(msg)
    try:
        if path.suffix == ".csv":
            return dict(pl.read_csv(path).schema)
        return dict(pl.read_parquet_schema(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        msg = f"table {path} cannot be read: {error}; check the path"
        raise GraphError(msg) from error


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> Mapping[str, str]:
    """Columns of the stream, and those of the table that they must equal."""
    if isinstance(on, Mapping):
        return dict(on)
    names = [on] if isinstance(on, str) else list(on)
    return {name: name for name in names}


def _check_pairs(stream: Schema, table: Schema, pairs: Mapping[str, str], label: str) -> None:
    if not pairs:
        msg = "lookup_join joins on no column: got none; pass e.g. on='sensor'"
        raise GraphError(msg)
    check_columns(stream, list(pairs), "lookup_join")
    for reserved in RESERVED_COLUMNS:
        if reserved in table:
            msg = f"table {label} has the reserved column {reserved!r}; rename it"
            raise GraphError(msg)
    for left, right in pairs.items():
        if right not in table:
            msg = f"table {label} has no column {right!r} to join on: it has {', '.join(table)}"
            raise GraphError(msg)
        if stream[left] != table[right]:
            msg = (
                f"lookup_join compares columns of different types: got {left}: {stream[left]} and "
                f"{right}: {table[right]}; cast one of them"
            )
            raise GraphError(msg)


def _named(column: str, stream: Schema, names: Mapping[str, str], suffix: str | None) -> str:
    """What a column of the table is called in the result."""
    used = {*stream, *names.values()}
    named = column if column not in used else f"{column}{suffix or ''}"
    if named in used:
        msg = (
            f"lookup_join gets the column {column!r} from both the stream and the table; pass "
            "another suffix, e.g. suffix='_table', or rename it before"
        )
        raise GraphError(msg)
    return named
