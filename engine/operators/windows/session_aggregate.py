"""Session aggregate: both halves of windows that end when a key is silent for a gap.

    rows --cut time into slices of one gap--> one fragment (first, last, partial) per key and slice
    fragments --join what is less than a gap apart--> sessions, in a table
    on_watermark   emit sessions with last + gap <= watermark
    flush          put the open sessions into the state, where a snapshot finds them

Two rows of a key in one slice are always less than a gap apart, so a slice never holds two sessions
and partials merge there as in any other window. Only the table looks across slices.

Shapes   out  (keys…, window_start, window_end, one column per aggregate, event_time); a session
              covers [first row, last row + gap), event_time is its last microsecond
Order    results leave sorted by (window_end, keys, window_start).
Late     a row is late when its own row watermark is a gap or more after it. A row that is behind
         by less than a gap joins only sessions that end after its row watermark: it waits until
         event time has passed that, because sessions that end before may have fired already.
Cost     a row costs what it costs in a tumbling window, and a fragment some tens of nanoseconds; a
         firing looks at one number per open session, a snapshot at all of each.
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
from engine.aggregates.cells import Taken
from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, Micros
from engine.operators.contract import Context, Operator
from engine.operators.late import LATE, LATE_ROWS, row_marks
from engine.operators.windows.panes import Panes
from engine.operators.windows.partial_aggregate import COUNTS_FROM, emit_partials, left_over
from engine.operators.windows.session_table import FIRST, LAST, SessionTable
from engine.operators.windows.window_aggregate import result_schema, results
from engine.state.contract import SLICE_END, StateDescriptor, StateKind
from engine.state.handles import RunsHandle
from engine.windows import Session, Times

_SLICE = "session.slice"


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
    """Gathers rows per key and slice of one gap."""

    name: ClassVar[str] = "partial_aggregate"
    compiled: ClassVar[bool] = True

    def __init__(self, keys: Sequence[str], window: Session, fragments: Partials) -> None:
        self.keys = tuple(keys)
        self.window = window
        self.fragments = fragments
        self._panes: Panes | None = None

    def open(self, ctx: Context) -> None:
        """Gather over batches, if all aggregates can be kept in cells."""
        cells = self.fragments.cells()
        if cells is not None:
            grid = (self.window.gap, 0, 0)
            [self._first] = cells[FIRST]
            self._panes = Panes(self.keys, grid, cells, ctx.max_parallelism, ctx.emit)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Set late rows aside, and gather those in time apart from those behind."""
        first = cast("int", frame.get_column(EVENT_TIME).min())
        if self._panes is not None and first >= ctx.watermark:
            frame = left_over(self._panes, self.fragments, frame, ctx.watermark)
        if frame.height:
            self._by_batch(frame, ctx)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Send on what sessions that are over now may be made of: rows before that time."""
        if self._panes is not None:
            last_end = min(time, MAX_TIME - self.window.gap) + self.window.gap - 1
            self._panes.flush_until(last_end, lambda cells: self._begins(cells) < time)

    def _begins(self, cells: Taken) -> Times:
        """The first event time of some cells."""
        [firsts] = self._first.read(cells)
        return firsts.to_numpy()

    def flush(self, ctx: Context) -> None:
        """Send everything on."""
        if self._panes is not None:
            self._panes.flush()

    def _by_batch(self, frame: pl.DataFrame, ctx: Context) -> None:
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
        ends = self.window.slice_ends(frame.get_column(EVENT_TIME).to_numpy())
        emit_partials(frame, ends, counts_from, self.fragments, self.keys, ctx)

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keys": ", ".join(self.keys), "window": str(self.window)}


class SessionAggregate(Operator):
    """Joins fragments to sessions, and gives the results of those that are over."""

    name: ClassVar[str] = "window_aggregate"
    compiled: ClassVar[bool] = True

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

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """Fragments by the slice of their last row; and those of rows that wait, by their time."""
        return (self._open, self._waiting)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Columns and types of the results."""
        return result_schema(self._open.keys, self.partials)

    def open(self, ctx: Context) -> None:
        """Tell the states how fragments of one slice merge, and put sessions together."""
        for descriptor in self.states:
            self._runs(ctx, descriptor).merge_with(self.fragments.merge)
        self._table = SessionTable(self.keys, self.window.gap, self.partials, ctx.max_parallelism)
        for run in self._runs(ctx, self._open).read(MIN_TIME, MAX_TIME):
            self._table.add(run)
        self._changed = False

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Join fragments to sessions that have not fired."""
        over = frame.get_column(LAST) + self.window.gap <= ctx.watermark
        if over.any():  # possible only after an input was idle
            ctx.count(LATE_ROWS, int(frame.get_column(ROWS).filter(over).sum()))
            frame = frame.filter(~over)
        if COUNTS_FROM in frame.columns:
            waiting = frame.rename({SLICE_END: _SLICE, COUNTS_FROM: SLICE_END})
            soon = pl.col(SLICE_END).clip(lower_bound=ctx.watermark + 1)
            self._runs(ctx, self._waiting).append(waiting.with_columns(soon))
        else:
            self._table.add(frame)
            self._changed = True

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Give the results of every session that event time has passed."""
        woken = self._runs(ctx, self._waiting).take_until(time)
        if woken is not None:
            # In this order each finds those sessions over that were when it came.
            woken = woken.sort(SLICE_END)
            self._table.add(woken, woken.get_column(SLICE_END).to_numpy() - 1)
        closed = self._table.close(time - self.window.gap)
        if closed is not None:
            ctx.emit(self._results(closed))
        self._changed |= woken is not None or closed is not None

    def flush(self, ctx: Context) -> None:
        """Put the open sessions where snapshots find them."""
        if not self._changed:
            return
        runs = self._runs(ctx, self._open)
        runs.drop_until(MAX_TIME)
        sessions = self._table.all()
        if sessions is not None:
            last = sessions.get_column(LAST).to_numpy()
            runs.append(sessions.with_columns(pl.Series(SLICE_END, self.window.slice_ends(last))))
        self._changed = False

    def _results(self, closed: pl.DataFrame) -> pl.DataFrame:
        closed = closed.sort(LAST, *self.keys, FIRST)
        start, end = closed.get_column(FIRST), closed.get_column(LAST) + self.window.gap
        return results(closed, self.keys, start, end, self.partials)

    def _runs(self, ctx: Context, descriptor: StateDescriptor) -> RunsHandle:
        return cast("RunsHandle", ctx.state(descriptor))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {
            "keys": ", ".join(self.keys),
            "window": str(self.window),
            "aggregates": str(self.partials),
        }
