"""Rows per key in memory: frames by reference, put together when they are read or are many.

    append_many ──▶ key ──▶ [frame, frame, …]      small frames of one key become one
    freeze ──▶ the same frames, by reference

Cost     adding a frame to a key copies nothing; a row is copied about log8(rows of its key) times
         in its life. Freezing copies one reference per key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, takewhile

import numpy as np
import polars as pl

from engine.elements import KEY_GROUP
from engine.state.changes import LayerPolicy
from engine.state.contract import (
    ROW_INDEX,
    Frozen,
    FrozenChanges,
    FrozenState,
    Increment,
    StateDescriptor,
)
from engine.state.handles import FramesHandle, Key
from engine.state.row_changes import AppendChanges, Appended
from engine.state.runs import FAN_OUT, level_of
from engine.state.schema import table_schema
from engine.state.tables import key_table

_Frames = tuple[pl.DataFrame, ...]


class MemoryFrames(FramesHandle):
    """The rows of each key, in a dict."""

    def __init__(self, descriptor: StateDescriptor, policy: LayerPolicy | None = None) -> None:
        self.descriptor = descriptor
        self._columns = [name for name in descriptor.values if name != ROW_INDEX]
        self._frames: dict[Key, _Frames] = {}
        self._changes = AppendChanges(policy or LayerPolicy())
        self._rows = 0

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Sequence[pl.DataFrame]]:
        """The frames of those keys that have rows."""
        return {key: self._frames[key] for key in keys if key in self._frames}

    def append_many(self, rows: Mapping[Key, Sequence[pl.DataFrame]]) -> None:
        """Add frames to what keys have."""
        for key, frames in rows.items():
            held = self._frames.get(key, ())
            self._note(key, held, frames)
            for frame in frames:
                if frame.height:
                    # Asking is cheap, selecting is not, and there may be thousands of small frames.
                    fits = frame.columns == self._columns
                    held = _compacted(held, frame if fits else frame.select(self._columns))
            if held:
                self._frames[key] = held

    def remove_many(self, keys: Iterable[Key]) -> None:
        """Forget the rows of keys."""
        for key in keys:
            held = self._frames.pop(key, None)
            if held is not None:
                self._rows -= _rows_of(held)
                if self._changes.tracks:
                    self._changes.note_removed(key)

    def _note(self, key: Key, held: _Frames, more: Sequence[pl.DataFrame]) -> None:
        rows = _rows_of(more)
        self._rows += rows
        if rows and self._changes.tracks:
            self._changes.note_appended(key, _rows_of(held), rows)

    def load(self, table: pl.DataFrame) -> None:
        """Add rows of a canonical table, or of the next part of one."""
        for key, rows in rows_by_key(self.descriptor, table):
            self._frames[key] = (*self._frames.get(key, ()), rows)
        self._rows += table.height

    def freeze(self) -> FrozenState:
        """References to all frames."""
        return FrozenFrames(self.descriptor, self._frames.copy())

    def freeze_increment(self, increment: Increment) -> Frozen:
        """References to the frames that have come."""
        descriptor, changed = self.descriptor, self._changes.freeze(increment, self._rows)
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        come = {
            key: behind(self._frames[key], start)
            for key, start in changed.starts.items()
            if key in self._frames
        }
        return frame_changes(
            descriptor,
            increment,
            changed,
            rows=FrozenFrames(descriptor, come, changed.starts).tables,
        )


class FrozenFrames(FrozenState):
    """The rows of one subtask's keys as they were at a barrier."""

    def __init__(
        self,
        descriptor: StateDescriptor,
        frames: Mapping[Key, _Frames],
        starts: Mapping[Key, int] | None = None,
    ) -> None:
        """`starts`: behind how many rows of each key these are."""
        self.descriptor = descriptor
        self._frames = {key: held for key, held in frames.items() if held}
        self._starts = starts or {}

    def table(self) -> pl.DataFrame:
        """The canonical table, sorted by key group, keys and index."""
        schema = table_schema(self.descriptor)
        if not self._frames:
            return pl.DataFrame(schema=schema)
        names = [KEY_GROUP, *self.descriptor.keys]
        keys = pl.DataFrame(
            list(self._frames), {name: schema[name] for name in names}, orient="row"
        )
        heights = np.array([_rows_of(held) for held in self._frames.values()])
        left_out = np.array([self._starts.get(key, 0) for key in self._frames])
        starts = np.repeat(np.cumsum(heights) - heights - left_out, heights)
        index = np.arange(heights.sum()) - starts
        rows = pl.concat(frame for held in self._frames.values() for frame in held)
        columns = [
            *keys[np.repeat(np.arange(len(heights)), heights)],
            pl.Series(ROW_INDEX, index),
            *rows,
        ]
        return pl.DataFrame(columns).select(list(schema)).sort(*names, ROW_INDEX)


def frame_changes(
    descriptor: StateDescriptor,
    increment: Increment,
    changed: Appended,
    rows: Callable[[], Iterable[pl.DataFrame]],
) -> FrozenChanges:
    """`rows` that have come behind those of their keys, as a checkpoint writes them."""
    return FrozenChanges(
        descriptor,
        since=increment.base,
        by=(KEY_GROUP, *descriptor.keys),
        replaces=False,
        rows=rows,
        removed=lambda: [key_table(descriptor, changed.removed)],
    )


def rows_by_key(
    descriptor: StateDescriptor, table: pl.DataFrame
) -> Iterator[tuple[Key, pl.DataFrame]]:
    """The rows of each key of a canonical table."""
    if table.is_empty():
        return
    keys = table.select(KEY_GROUP, *descriptor.keys)
    rows = table.select(name for name in descriptor.values if name != ROW_INDEX)
    begins = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift()) for name in keys.columns
    )
    starts = np.flatnonzero(keys.select(begins).to_series().to_numpy()).tolist()
    for start, stop in pairwise([*starts, table.height]):
        yield keys.row(start), rows.slice(start, stop - start)


def taken_in(rows: int, before: Iterable[int]) -> int:
    """How many frames one of so many rows is put together with: none, or many of its size class.

    `before`: the rows of those that it comes behind, from the last one on.

    >>> taken_in(1, [1] * 7), taken_in(1, [1] * 6), taken_in(1, [1, 8, 1])
    (7, 0, 0)
    """
    level = level_of(rows)
    small = sum(1 for _ in takewhile(lambda each: level_of(each) <= level, before))
    return small if small >= FAN_OUT - 1 else 0


def _rows_of(frames: Iterable[pl.DataFrame]) -> int:
    return sum(frame.height for frame in frames)


def behind(frames: Iterable[pl.DataFrame], start: int) -> _Frames:
    """The rows of some frames from one on, by reference."""
    left: list[pl.DataFrame] = []
    for frame in frames:
        if start < frame.height:
            left.append(frame.slice(start) if start else frame)
        start = max(0, start - frame.height)
    return tuple(left)


def _compacted(frames: _Frames, frame: pl.DataFrame) -> _Frames:
    """Some frames and one more, which is made one with the last when there are many of its size."""
    kept = len(frames) - taken_in(frame.height, (each.height for each in reversed(frames)))
    if kept == len(frames):
        return (*frames, frame)
    return (*frames[:kept], pl.concat([*frames[kept:], frame], rechunk=True))
