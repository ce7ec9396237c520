"""Row classes: dataclasses of an author that stand for rows, and the columns that they come to.

    @dataclass
    class Reading:
        sensor: str
        value: float | None          a column that may be null; the others may not
        tags: list[str]
        at: datetime                 Datetime(us, UTC)
        floor: Annotated[int, pl.Int16]

Errors   GraphError for a class that is no dataclass, for a field whose type is no column's, for a
         stream whose columns the class does not fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import polars as pl

from engine.elements import EVENT_TIME, RESERVED_COLUMNS
from engine.errors import GraphError
from engine.state.schema import TypeLike, as_type

SchemaLike = Mapping[str, TypeLike] | type[Any]
"""How authors write the columns of a result: names with types, or a dataclass."""


@dataclasses.dataclass(frozen=True, slots=True)
class RowClass:
    """A dataclass, and the columns of its fields."""

    made: type[Any]
    columns: Mapping[str, pl.DataType]
    required: frozenset[str]
    """Fields that cannot be None."""

    @property
    def name(self) -> str:
        """What authors call it."""
        return self.made.__name__


def row_class(given: object) -> RowClass:
    """Look at a class of an author. Raises GraphError.

    >>> @dataclasses.dataclass
    ... class Reading:
    ...     sensor: str
    ...     value: float | None
    >>> reading = row_class(Reading)
    >>> reading.columns, sorted(reading.required)
    ({'sensor': String, 'value': Float64}, ['sensor'])
    """
    if not isinstance(given, type) or not dataclasses.is_dataclass(given):
        msg = (
            f"rows need columns or a dataclass: got {given!r}; write @dataclass, or a dict of types"
        )
        raise GraphError(msg)
    hints = _hints(given)
    columns, required = {}, set()
    for field in dataclasses.fields(given):
        if not field.init or field.kw_only:
            msg = (
                f"field {field.name!r} of {given.__name__} is not an ordinary one: rows are made "
                "from the values of all fields, in order; leave out init=False and kw_only"
            )
            raise GraphError(msg)
        inner, optional = _optional(hints[field.name])
        columns[field.name] = _column(inner, field.name, given)
        if not optional:
            required.add(field.name)
    if not columns:
        msg = f"class {given.__name__} has no fields; a row needs at least one"
        raise GraphError(msg)
    return RowClass(given, columns, frozenset(required))


def check_fits(made: RowClass, schema: Mapping[str, pl.DataType]) -> None:
    """Refuse a class whose fields are not columns of a stream. Raises GraphError."""
    for name, wanted in made.columns.items():
        if name not in schema:
            columns = ", ".join(column for column in schema if column not in RESERVED_COLUMNS)
            msg = (
                f"class {made.name} has the field {name!r}, which is no column: the stream has "
                f"{columns or 'none'}; rename one of them"
            )
            raise GraphError(msg)
        if not _same_kind(wanted, schema[name]):
            msg = (
                f"field {name!r} of {made.name} is another type than its column: got {wanted} for "
                f"{schema[name]}; change the annotation, or cast the column"
            )
            raise GraphError(msg)


def check_names(made: RowClass, *, timed: bool) -> None:
    """Refuse fields with the names of reserved columns. Raises GraphError."""
    for name in made.columns:
        if name in RESERVED_COLUMNS and not (name == EVENT_TIME and timed):
            msg = f"class {made.name} has the reserved column {name!r} as a field; leave it out"
            raise GraphError(msg)


def _hints(given: type[Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(given, include_extras=True)
    except (NameError, TypeError) as error:
        msg = (
            f"annotations of {given.__name__} cannot be read: {error}; import what they name at "
            "the top of the file"
        )
        raise GraphError(msg) from error


def _optional(hint: Any) -> tuple[Any, bool]:
    """A type without its None, and whether it had one."""
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    others = [each for each in get_args(hint) if each is not NoneType]
    return (others[0] if len(others) == 1 else hint), len(others) < len(get_args(hint))


def _column(hint: Any, name: str, given: type[Any]) -> pl.DataType:
    try:
        return _type_of(hint)
    except GraphError as error:
        shown = getattr(hint, "__name__", str(hint))
        msg = (
            f"field {name!r} of {given.__name__} has no column type: got {shown}; use int, float, "
            "str, bool, bytes, date, datetime, timedelta, lists of them, or Annotated[…, pl.Int16]"
        )
        raise GraphError(msg) from error


def _type_of(hint: Any) -> pl.DataType:
    if get_origin(hint) is Annotated:
        _, *notes = get_args(hint)
        types = [note for note in notes if _is_column_type(note)]
        return as_type(types[0]) if types else _type_of(get_args(hint)[0])
    if get_origin(hint) is list:
        inner, _ = _optional(get_args(hint)[0])
        return pl.List(_type_of(inner))
    return as_type(hint)


def _is_column_type(note: object) -> bool:
    return isinstance(note, pl.DataType) or (
        isinstance(note, type) and issubclass(note, pl.DataType)
    )


def _same_kind(wanted: pl.DataType, given: pl.DataType) -> bool:
    """Whether values of a column are of the Python type that a field has."""
    if isinstance(wanted, pl.List) and isinstance(given, pl.List | pl.Array):
        return _same_kind(as_type(wanted.inner), as_type(given.inner))
    if wanted.is_integer():
        return given.is_integer()
    if wanted.is_float():
        return given.is_float()
    if isinstance(wanted, pl.Datetime | pl.Duration):
        return type(given) is type(wanted)
    if wanted == pl.String:
        return given in (pl.String, pl.Categorical, pl.Enum)
    return wanted == given
