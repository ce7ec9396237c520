"""Session aggregate: both halves of windows that end when a key is silent for a gap.

    rows --cut time into slices of one gap--> one fragment (first, last, partial) per key and slice
    fragments --sort by key and first row, cut where the gap is reached, merge--> sessions
    on_watermark   emit sessions with last + gap <= watermark; put the others back, one row each

Two rows of a key in one slice are always less than a gap apart, so a slice never holds two sessions
and partials merge there as in any other window. Only a firing looks across slices.

Shapes   out  (keys…, window_start, window_end, one column per aggregate, event_time); a session
              covers [first row, last row + gap), event_time is its last microsecond
Order    results leave sorted by (window_end, keys, window_start).
Late     a row is late when its own row watermark is a gap or more after it. A row that is behind
         by less than a gap joins only sessions that end after its row watermark: it waits until
         event time has passed that, because sessions that end before may have fired already.
Cost     a row costs what it costs in a tumbling window; a firing scans one row per open session and
         slice, and sorts those of keys that have been silent for a gap.
Source   Akidau et al., The Dataflow Model, VLDB 2015, section 2.2.1 (sessions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
import polars as pl

from engine.aggregates import ROWS, Accumulator, Partials
from engine.aggregates import max as largest
from engine.aggregates import min as smallest
from engine.elements import EVENT_TIME, KEY_GROUP, Micros
from engine.keygroups import key_groups
from engine.operators.contract import Context, Operator
from engine.operators.partial_aggregate import (
    COUNTS_FROM,
    LATE,
    LATE_ROWS,
    aggregated,
    row_marks,
)
from engine.operators.window_aggregate import result_schema, results
from engine.state.contract import SLICE_END, StateDescriptor, StateKind
from engine.state.handles import RunsHandle
from engine.windows import Session, Times

FIRST = "session.first"
LAST = "session.last"
_SLICE = "session.slice"
_BEGINS = "session.begins"
_SESSION = "session.number"


def session_partials(
    accumulators: Mapping[str, Accumulator], expressions: Mapping[str, pl.Expr]
) -> Partials:
    """The partials of fragments: those of some aggregates, and the first and last event time."""
    time, whole = pl.col(EVENT_TIME), pl.Int64()
    bounds = {FIRST: smallest(time), LAST: largest(time)}
    return Partials(
        {
            **{name: bound.accumulator(name, whole) for name, bound in bounds.items()},
            **accumulators,
        },
        {**{name: bound.of for name, bound in bounds.items()}, **expressions},
    )


class PartialSessions(Operator):
    """Gathers rows of one batch per key and slice of one gap."""

    name: ClassVar[str] = "partial_aggregate"

    def __init__(self, keys: Sequence[str], window: Session, fragments: Partials) -> None:
        self.keys = tuple(keys)
        self.window = window
        self.fragments = fragments

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Set late rows aside, and gather those in time apart from those behind."""
        times = frame.get_column(EVENT_TIME).to_numpy()
        marks = row_marks(frame, ctx.watermark)
        if marks is None:
            marks = np.full_like(times, ctx.watermark)
        behind = marks > times
        if not behind.any():
            self._emit(frame, None, ctx)
            return
        late = behind & (marks >= times + np.int64(self.window.gap))
        if late.any():
            ctx.emit(frame.filter(late), LATE)
            ctx.count(LATE_ROWS, int(late.sum()))
        waits = behind & ~late
        self._emit(frame.filter(~behind), None, ctx)
        self._emit(frame.filter(waits), marks[waits] + 1, ctx)

    def _emit(self, frame: pl.DataFrame, counts_from: Times | None, ctx: Context) -> None:
        if not frame.height:
            return
        ends = pl.Series(SLICE_END, self.window.slice_ends(frame.get_column(EVENT_TIME).to_numpy()))
        also = [] if counts_from is None else [pl.Series(COUNTS_FROM, counts_from)]
        partial = aggregated(self.fragments, frame, ends, self.keys, also)
        groups = key_groups(partial, self.keys, ctx.max_parallelism)
        ctx.emit(partial.insert_column(0, groups))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keys": ", ".join(self.keys), "window": str(self.window)}


class SessionAggregate(Operator):
    """Joins fragments to sessions, and gives the results of those that are over."""

    name: ClassVar[str] = "window_aggregate"

    def __init__(
        self,
        keys: Mapping[str, pl.DataType],
        window: Session,
        fragments: Partials,
        partials: Partials,
    ) -> None:
        self.keys = tuple(keys)
        self.window = window
        self.fragments = fragments
        self.partials = partials
        columns = fragments.columns
        defaults = partials.defaults
        self._open = StateDescriptor("sessions", StateKind.RUNS, dict(keys), columns, defaults)
        sliced = {**keys, _SLICE: pl.Int64()}
        self._waiting = StateDescriptor("waiting", StateKind.RUNS, sliced, columns, defaults)
        self._columns = [KEY_GROUP, *keys, SLICE_END, *columns]

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """Fragments by the slice of their last row; and those of rows that wait, by their time."""
        return (self._open, self._waiting)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Columns and types of the results."""
        return result_schema(self._open.keys, self.partials)

    def open(self, ctx: Context) -> None:
        """Tell the states how fragments of one slice merge."""
        for descriptor in self.states:
            self._runs(ctx, descriptor).merge_with(self.fragments.merge)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Keep fragments of sessions that have not fired."""
        over = frame.get_column(LAST) + self.window.gap <= ctx.watermark
        if over.any():  # possible only after an input was idle
            ctx.count(LATE_ROWS, int(frame.get_column(ROWS).filter(over).sum()))
            frame = frame.filter(~over)
        if COUNTS_FROM in frame.columns:
            waiting = frame.rename({SLICE_END: _SLICE, COUNTS_FROM: SLICE_END})
            soon = pl.col(SLICE_END).clip(lower_bound=ctx.watermark + 1)
            self._runs(ctx, self._waiting).append(waiting.with_columns(soon))
        else:
            self._runs(ctx, self._open).append(frame)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Give the results of every session that event time has passed."""
        runs, waiting = (self._runs(ctx, state) for state in self.states)
        woken = waiting.take_until(time)
        closed = self._closed(runs, time) if woken is None else self._after(runs, woken, time)
        if closed is not None and closed.height:
            ctx.emit(self._results(closed))

    def _closed(self, runs: RunsHandle, time: int) -> pl.DataFrame | None:
        """Take the sessions that are over. The last row of such a one is in a slice that has ended,
        so only keys with an old fragment there are looked at.
        """
        ended = runs.read(-(2**63), time)
        if not any(self._any_over(run, time) for run in ended):
            return None
        fragments = pl.concat(ended)
        old = fragments.filter(pl.col(LAST) + self.window.gap <= time).select(self.keys).unique()
        over, left = self._cut(fragments.join(old, on=self.keys, how="semi"), time)
        # One slice goes beyond that time: what it holds may go on with a session that looks over.
        after = runs.read(time, time + self.window.gap - 1)
        if after and over.height:
            over, joined = self._going_on(over, pl.concat(after))
            left = pl.concat([left, joined])
        runs.drop_until(time)
        runs.append(fragments.join(old, on=self.keys, how="anti"))
        runs.append(left)
        return over

    def _going_on(
        self, over: pl.DataFrame, after: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Sessions that are over, and those that rows of the next slice belong to, put there."""
        known = after.join(over, on=self.keys, how="semi")
        begins = known.group_by(self.keys).agg(
            pl.col(FIRST).min().alias(_BEGINS), pl.col(SLICE_END).first().alias(_SLICE)
        )
        both = over.join(begins, on=self.keys, how="left", maintain_order="left")
        on = (pl.col(_BEGINS) - pl.col(LAST) < self.window.gap).fill_null(value=False)
        joined = both.filter(on).with_columns(pl.col(_SLICE).alias(SLICE_END))
        return both.filter(~on).select(self._columns), joined.select(self._columns)

    def _after(self, runs: RunsHandle, woken: pl.DataFrame, time: int) -> pl.DataFrame:
        """Take the sessions that are over, when some rows have waited for this time."""
        found = runs.take_until(Micros(time + self.window.gap - 1))
        fragments = pl.DataFrame(schema=self._open_schema) if found is None else found
        fired, fragments = self._woken(fragments.select(self._columns), woken)
        over, left = self._cut(fragments, time)
        runs.append(left)
        return pl.concat([*fired, over])

    def _woken(
        self, fragments: pl.DataFrame, woken: pl.DataFrame
    ) -> tuple[list[pl.DataFrame], pl.DataFrame]:
        """Add the rows that waited, each after the sessions that end before its row watermark."""
        fired: list[pl.DataFrame] = []
        for at, rows in sorted(woken.partition_by(SLICE_END, as_dict=True).items()):
            mark = int(at[0]) - 1
            if self._any_over(fragments, mark):
                over, fragments = self._cut(fragments, mark)
                fired.append(over)
            ready = rows.drop(SLICE_END).rename({_SLICE: SLICE_END})
            fragments = pl.concat([fragments, ready.select(self._columns)])
        return fired, fragments

    def _cut(self, fragments: pl.DataFrame, time: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Join fragments to sessions: those that are over at a time, and the others."""
        joined = fragments.sort(*self.keys, FIRST)
        reach = pl.col(LAST).cum_max().shift(1).over(self.keys)
        begins = (pl.col(FIRST) - reach >= self.window.gap).fill_null(value=True)
        numbered = joined.with_columns(begins.cum_sum().alias(_SESSION))
        merged = self.fragments.merge(numbered, [_SESSION], [KEY_GROUP, *self.keys])
        last = merged.get_column(LAST)
        ends = pl.Series(SLICE_END, self.window.slice_ends(last.to_numpy()))
        sessions = merged.with_columns(ends).select(self._columns)
        over = last + self.window.gap <= time
        return sessions.filter(over), sessions.filter(~over)

    def _any_over(self, fragments: pl.DataFrame, time: int) -> bool:
        first_last = cast("int | None", fragments.get_column(LAST).min())
        return first_last is not None and first_last + self.window.gap <= time

    def _results(self, closed: pl.DataFrame) -> pl.DataFrame:
        closed = closed.sort(LAST, *self.keys, FIRST)
        start, end = closed.get_column(FIRST), closed.get_column(LAST) + self.window.gap
        return results(closed, self.keys, start, end, self.partials)

    @property
    def _open_schema(self) -> dict[str, pl.DataType]:
        return {
            KEY_GROUP: pl.UInt16(),
            **self._open.keys,
            SLICE_END: pl.Int64(),
            **self._open.values,
        }

    def _runs(self, ctx: Context, descriptor: StateDescriptor) -> RunsHandle:
        return cast("RunsHandle", ctx.state(descriptor))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {
            "keys": ", ".join(self.keys),
            "window": str(self.window),
            "aggregates": str(self.partials),
        }
