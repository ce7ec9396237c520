"""Keyed values to the canonical table of a snapshot, and back: the same for every backend.

    VALUE  {key: item}                   one row per key
    LIST   {key: [item, item]}           one row per element, with its index
    MAP    {key: {map key: item}}        one row per entry

Shapes   an item is the value of the one payload column, or a tuple when there are several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from engine.elements import KEY_GROUP
from engine.state.contract import INDEX, MAP_KEY, StateDescriptor, StateKind
from engine.state.handles import Key
from engine.state.schema import table_schema

_SECOND_KEY = {StateKind.LIST: INDEX, StateKind.MAP: MAP_KEY}


def payload(descriptor: StateDescriptor) -> tuple[str, ...]:
    """The columns that an item consists of."""
    second = _SECOND_KEY.get(descriptor.kind)
    return tuple(name for name in descriptor.values if name != second)


def table_of(descriptor: StateDescriptor, items: Iterable[tuple[Key, Any]]) -> pl.DataFrame:
    """The canonical table, sorted by key group, keys, and index or map key."""
    schema = table_schema(descriptor)
    rows = list(_rows(descriptor, items))
    if not rows:
        return pl.DataFrame(schema=schema)
    columns = zip(*rows, strict=True)
    table = pl.DataFrame(
        [
            pl.Series(name, list(values), dtype=dtype)
            for (name, dtype), values in zip(schema.items(), columns, strict=True)
        ]
    )
    return in_order(descriptor, table)


def key_table(descriptor: StateDescriptor, keys: Iterable[Key], *others: str) -> pl.DataFrame:
    """Keys, with what else belongs to them, as a table of those columns; sorted."""
    schema = table_schema(descriptor)
    names = [KEY_GROUP, *descriptor.keys, *others]
    rows = pl.DataFrame(list(keys), {name: schema[name] for name in names}, orient="row")
    return rows.sort(names)


def in_order(descriptor: StateDescriptor, table: pl.DataFrame) -> pl.DataFrame:
    """Sort a table by key group, keys, and index or map key."""
    second = _SECOND_KEY.get(descriptor.kind)
    return table.sort(KEY_GROUP, *descriptor.keys, *([second] if second else []))


def items_of(descriptor: StateDescriptor, table: pl.DataFrame) -> Iterator[tuple[Key, Any]]:
    """Read a canonical table; rows of one key lie together."""
    width = 1 + len(descriptor.keys)
    rows = table.iter_rows()
    if descriptor.kind is StateKind.VALUE:
        return ((row[:width], _item(row[width:])) for row in rows)
    groups = groupby(rows, key=itemgetter(slice(0, width)))
    if descriptor.kind is StateKind.LIST:
        return ((key, [_item(row[width + 1 :]) for row in group]) for key, group in groups)
    return ((key, {row[width]: _item(row[width + 1 :]) for row in group}) for key, group in groups)


def continued(before: Any, more: Any) -> Any:
    """A list or map that was cut in two; `before` is None when there is no first half."""
    if before is None:
        return more
    return before + more if isinstance(before, list) else before | more


def _item(columns: tuple[Any, ...]) -> Any:
    return columns[0] if len(columns) == 1 else columns


def _rows(
    descriptor: StateDescriptor, items: Iterable[tuple[Key, Any]]
) -> Iterator[tuple[Any, ...]]:
    single = len(payload(descriptor)) == 1
    match descriptor.kind:
        case StateKind.LIST:
            spread = ((key, enumerate(given)) for key, given in items)
        case StateKind.MAP:
            spread = ((key, given.items()) for key, given in items)
        case _:
            if single:
                return ((*key, item) for key, item in items)
            return ((*key, *item) for key, item in items)
    if single:
        return ((*key, second, item) for key, pairs in spread for second, item in pairs)
    return ((*key, second, *item) for key, pairs in spread for second, item in pairs)
