"""Window join: rows of two streams meet when they have one key and lie in one window.

    on_batch       rows wait in the runs of their slices, each side apart
    on_watermark   for every window that event time has passed: join its rows on the key, emit;
                   drop the slices that no later window needs

Shapes   out  (left columns, right columns but for keys, window_start, window_end, event_time); the
              event time is the window's last microsecond. A side that an outer join does without
              is null; keys never are
Order    results leave sorted by (window_end, keys).
Late     a row is late when its own row watermark had reached the end of its last window: "late"
         those of the left, "late_right" those of the right. A row that is late for some of its
         windows is in the others.
Cost     a row is kept once, however many windows it lies in; a firing joins what the window holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Literal, cast

import numpy as np
import polars as pl

from engine.elements import EVENT_TIME, MIN_TIME, Micros
from engine.operators.contract import Context, Operator
from engine.operators.expressions import user_columns
from engine.operators.joins.join_sides import Side, joined_schema
from engine.operators.late import row_marks, set_aside
from engine.operators.windows.horizons import horizons
from engine.operators.windows.window_aggregate import WINDOW_END, WINDOW_START
from engine.state.contract import SLICE_END, StateDescriptor, StateKind
from engine.state.handles import RunsHandle
from engine.windows import SlicedWindows

COUNTS_FROM = "join.from"
"""The end of the first window that a row is in time for; the smallest time for all of its own."""

_UTC = pl.Datetime("us", "UTC")

_MOST_ROWS = 500_000
"""So many rows are joined at once: many small windows share a query, few large ones fit."""


class How(StrEnum):
    """Which rows are in the result even when they meet none."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"


class WindowJoin(Operator):
    """Joins the rows of input 0 and 1 in each window."""

    name: ClassVar[str] = "window_join"

    def __init__(self, left: Side, right: Side, window: SlicedWindows, how: How) -> None:
        self.left = left
        self.right = right
        self.window = window
        self.how = how
        self._sides = (left, right)
        self._horizons = horizons(window)
        self._kept = (_kept("left", left), _kept("right", right))
        self.schema = joined_schema(left, right, {WINDOW_START: _UTC, WINDOW_END: _UTC})

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """The rows of each side, by slice."""
        return self._kept

    def open(self, ctx: Context) -> None:
        """Go on from the last window that fired."""
        self._reached = ctx.watermark

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Keep rows of which some window is still to come."""
        ends = self.window.slice_ends(frame.get_column(EVENT_TIME).to_numpy())
        counts_from = np.full_like(ends, MIN_TIME)
        marks = row_marks(frame, ctx.watermark)
        if marks is None and ctx.watermark >= ends.min():
            marks = np.full_like(ends, ctx.watermark)
        if marks is not None:
            counts_from = self._horizons.counts_from(ends, marks)
            late = counts_from > self._horizons.last(ends)
            frame = set_aside(frame, pl.Series(late) if late.any() else None, port, ctx)
            ends, counts_from = ends[~late], counts_from[~late]
        marked = pl.Series(SLICE_END, ends), pl.Series(COUNTS_FROM, counts_from)
        self._runs(ctx, port).append(frame.with_columns(marked))

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Join the rows of every window that event time has passed."""
        since, self._reached = self._reached, time
        left, right = self._runs(ctx, 0), self._runs(ctx, 1)
        slices = {*left.slice_ends(), *right.slice_ends()}
        due = self._horizons.ends(sorted(slices), since, time)
        for ends in self._in_parts(due, left, right):
            ctx.emit(self._joined(ends, left, right))
        done = [end for end in slices if self.window.last_ends(end) <= time]
        if done:
            left.drop_until(max(done))
            right.drop_until(max(done))

    def _in_parts(
        self, due: Sequence[int], left: RunsHandle, right: RunsHandle
    ) -> Iterator[list[int]]:
        """Windows that are joined in one query."""
        part: list[int] = []
        rows = 0
        for end in due:
            part.append(end)
            start = self.window.start(end)
            rows += sum(run.height for side in (left, right) for run in side.read(start, end))
            if rows >= _MOST_ROWS:
                yield part
                part, rows = [], 0
        if part:
            yield part

    def _joined(self, ends: Sequence[int], left: RunsHandle, right: RunsHandle) -> pl.DataFrame:
        """What some windows give."""
        mine = self._gathered(0, ends, left)
        names = dict(zip(self.right.keys, self.left.keys, strict=True)) | dict(self.right.names)
        theirs = self._gathered(1, ends, right).rename(names)
        on = [*self.left.keys, WINDOW_END]
        how: Literal["inner", "left", "right", "full"] = self.how.value
        met = mine.join(theirs, on=on, how=how, coalesce=True).sort(WINDOW_END, *self.left.keys)
        end = met.get_column(WINDOW_END)
        start = end.replace_strict({end: self.window.start(end) for end in ends}).cast(pl.Int64)
        times = start.cast(_UTC).alias(WINDOW_START), end.cast(_UTC)
        return met.with_columns(*times, (end - 1).alias(EVENT_TIME)).select(list(self.schema))

    def _gathered(self, port: int, ends: Sequence[int], runs: RunsHandle) -> pl.DataFrame:
        """The rows that one side has in some windows: one per row and window."""
        columns = user_columns(self._sides[port].schema)
        schema = {name: self._sides[port].schema[name] for name in columns}
        frames = [pl.DataFrame(schema={**schema, WINDOW_END: pl.Int64()})]
        for end in ends:
            frames += [
                run.filter(pl.col(COUNTS_FROM) <= end).select(
                    *columns, pl.lit(end, pl.Int64).alias(WINDOW_END)
                )
                for run in runs.read(self.window.start(end), end)
            ]
        return pl.concat(frames)

    def _runs(self, ctx: Context, port: int) -> RunsHandle:
        return cast("RunsHandle", ctx.state(self._kept[port]))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keys": ", ".join(self.left.keys), "window": str(self.window), "how": self.how}


def _kept(name: str, side: Side) -> StateDescriptor:
    keys = {key: side.schema[key] for key in side.keys}
    values = {column: side.schema[column] for column in side.columns}
    return StateDescriptor(name, StateKind.RUNS, keys, {COUNTS_FROM: pl.Int64(), **values})
