"""What one key has in one state, asked for while its operator runs.

    subtask's thread:  look_up(handle, …) ──▶ references to what the key has, or to all runs
    another thread:    the function it gave ──▶ rows of the canonical table

Shapes   values, lists, maps and frames have something per key; so have runs, per key and slice.
         What waits for its time (timers, rows) and what joins hold goes by time: no key has a
         value there.
Cost     on the subtask's thread one read of one key; of runs that do not fit into memory, a read of
         one key group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import polars as pl

from engine.elements import KEY_GROUP, MAX_TIME, MIN_TIME
from engine.state.contract import ROW_INDEX, SLICE_END, StateDescriptor, StateKind
from engine.state.handles import FramesHandle, Key, Merge, RunsHandle, ValueHandle
from engine.state.runs import merged
from engine.state.schema import table_schema
from engine.state.tables import table_of

WITH_VALUES = frozenset(
    {StateKind.VALUE, StateKind.LIST, StateKind.MAP, StateKind.FRAMES, StateKind.RUNS}
)
"""Kinds of state that can be asked for what a key has."""

Rows = Callable[[], pl.DataFrame]
"""Gives rows of the canonical table, one more than wanted when there are more. Any thread."""


def look_up(handle: object, descriptor: StateDescriptor, key: Key, most: int) -> Rows:
    """What a key has, at most `most` rows of it. The thread that owns the handle."""
    match handle:
        case ValueHandle():
            held = handle.get_many([key])
            found = {at: _cut(item, descriptor, most) for at, item in held.items()}
            return lambda: table_of(descriptor, found.items())
        case FramesHandle():
            frames = handle.get_many([key]).get(key, ())
            return lambda: _numbered(frames, descriptor, key, most)
        case RunsHandle():
            runs, merge = _runs(handle, key), handle.merge
            return lambda: _merged(runs, merge, descriptor, key)
        case _:
            msg = (
                f"state {descriptor.name!r} is of kind {descriptor.kind}: keys have no value in it"
            )
            raise TypeError(msg)


def _cut(item: Any, descriptor: StateDescriptor, most: int) -> Any:
    match descriptor.kind:
        case StateKind.LIST:
            assert isinstance(item, Sequence)
            return item[: most + 1]
        case StateKind.MAP:
            assert isinstance(item, Mapping)
            # One by one: a large map is not read whole.
            return {at: item[at] for at in islice(item, most + 1)}
        case _:
            return item


def _numbered(
    frames: Sequence[pl.DataFrame], descriptor: StateDescriptor, key: Key, most: int
) -> pl.DataFrame:
    schema = table_schema(descriptor)
    if not frames:
        return pl.DataFrame(schema=schema)
    rows = pl.concat(frames).head(most + 1).with_row_index(ROW_INDEX)
    names = (KEY_GROUP, *descriptor.keys)
    whose = [
        pl.lit(part, dtype=schema[name]).alias(name) for name, part in zip(names, key, strict=True)
    ]
    return rows.with_columns(*whose, pl.col(ROW_INDEX).cast(schema[ROW_INDEX])).select(list(schema))


def _runs(handle: RunsHandle, key: Key) -> Sequence[pl.DataFrame]:
    if handle.spans(MIN_TIME, MAX_TIME):
        return handle.read_span(MIN_TIME, MAX_TIME, (key[0], key[0] + 1))
    return handle.read(MIN_TIME, MAX_TIME)


def _merged(
    runs: Sequence[pl.DataFrame], merge: Merge | None, descriptor: StateDescriptor, key: Key
) -> pl.DataFrame:
    ours = [found for run in runs if (found := run.filter(_is(key, descriptor))).height]
    if not ours:
        return pl.DataFrame(schema=table_schema(descriptor))
    return merged(ours, merge, descriptor, slices=2).sort(SLICE_END)


def _is(key: Key, descriptor: StateDescriptor) -> pl.Expr:
    names = (KEY_GROUP, *descriptor.keys)
    schema = table_schema(descriptor)
    return pl.all_horizontal(
        pl.col(name) == pl.lit(part, dtype=schema[name])
        for name, part in zip(names, key, strict=True)
    )
