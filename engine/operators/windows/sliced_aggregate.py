"""Sliced aggregate: windows that share slices, or fire again for late rows.

    on_batch       append partials to the runs of their slices, stragglers apart
    on_watermark   for every horizon passed: merge the slices of the window, emit, keep them;
                   drop the slices that no later horizon needs

The slices of a window are complete when it first fires: what comes for them later is a straggler.
So first results come from a merge that moves along, and only stragglers are merged with it.

Shapes   in and out as `window_aggregate`. A result that is given again carries its horizon as
         `row_watermark`: windows behind it judge it by that.
Order    results leave sorted by (horizon, window_end, keys); those of a window that is too large
         for its memory, some key groups at a time.
Late     partials behind the last horizon of their slice, possible only after an input was idle, are
         dropped and counted by the rows they stand for.
Cost     a row costs what it costs in a tumbling window; the first firing of a window about what a
         few slices cost, however many it has (`aggregates/running.py`). Of
         small windows all slices are merged, many windows in one query. A firing for late rows
         merges all slices for the keys that have news.
Source   Traub et al., Scotty: Efficient Window Aggregation, ICDE 2018 (slices).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import ClassVar, cast

import numpy as np
import polars as pl

from engine.aggregates import ROWS, Partials
from engine.elements import MAX_TIME, MIN_TIME, ROW_WATERMARK, Micros
from engine.operators.contract import Context, Operator
from engine.operators.late import LATE_ROWS
from engine.operators.windows.horizons import Horizons
from engine.operators.windows.partial_aggregate import COUNTS_FROM
from engine.operators.windows.running_window import RunningWindow
from engine.operators.windows.window_aggregate import result_schema, results
from engine.state.contract import SLICE_END, StateDescriptor, StateKind
from engine.state.handles import RunsHandle, Span
from engine.windows import Sliding

_FIRING = "window.firing"

_MOST_BYTES = 2**26
"""So much is merged at once: many small windows share a query, few large ones fit."""


class SlicedAggregate(Operator):
    """Merges the slices of each window when event time has passed a horizon of it."""

    name: ClassVar[str] = "window_aggregate"
    compiled: ClassVar[bool] = True

    def __init__(
        self, keys: Mapping[str, pl.DataType], horizons: Horizons, partials: Partials
    ) -> None:
        self.keys = tuple(keys)
        self.horizons = horizons
        self.partials = partials
        self._slices = StateDescriptor(
            "slices", StateKind.RUNS, dict(keys), partials.columns, partials.defaults
        )
        marked = {**keys, COUNTS_FROM: pl.Int64()}
        self._stragglers = StateDescriptor(
            "stragglers", StateKind.RUNS, marked, partials.columns, partials.defaults
        )

    @property
    def allowed_lateness(self) -> Micros:
        """How long after its end a window may still be corrected."""
        return self.horizons.allowed

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """The partials per slice; and those that some result of their slice leaves out."""
        return (self._slices, self._stragglers)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Columns and types of the results."""
        return result_schema(self._slices.keys, self.partials)

    def open(self, ctx: Context) -> None:
        """Tell the states how partials merge, and go on from the last horizon."""
        for descriptor in self.states:
            self._runs(ctx, descriptor).merge_with(self.partials.merge)
        self._reached = ctx.watermark
        columns = {**self._slices.keys, **self.partials.columns}
        self._columns = list(columns)
        self._nothing = pl.DataFrame(schema=columns)
        self._window = self._new_window()
        self._points: dict[int, set[int]] = defaultdict(set)
        """The points that the stragglers of each slice count from."""
        for run in self._runs(ctx, self._stragglers).read(MIN_TIME, MAX_TIME):
            self._note(run)

    def _new_window(self) -> RunningWindow:
        slides = isinstance(self.horizons.window, Sliding)
        return RunningWindow(self.keys, self.partials, slides=slides)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Keep partials of which some result is still to come."""
        ends = frame.get_column(SLICE_END).to_numpy()
        first = self.horizons.window.first_ends(ends)
        counts_from = first
        if COUNTS_FROM in frame.columns:
            counts_from = frame.get_column(COUNTS_FROM).to_numpy()
        if ctx.watermark >= counts_from.min(initial=MAX_TIME):
            counts_from = np.maximum(
                counts_from, self.horizons.counts_from(ends, np.full_like(ends, ctx.watermark))
            )
            late = counts_from > self.horizons.last(ends)
            if late.any():
                ctx.count(LATE_ROWS, int(frame.get_column(ROWS).filter(late).sum()))
                frame, first, counts_from = frame.filter(~late), first[~late], counts_from[~late]
        held = counts_from > first
        if held.any():
            marked = frame.with_columns(pl.Series(COUNTS_FROM, counts_from)).filter(held)
            self._runs(ctx, self._stragglers).append(marked)
            self._note(marked)
            frame = frame.filter(~held)
        self._runs(ctx, self._slices).append(frame)

    def _note(self, stragglers: pl.DataFrame) -> None:
        for slice_end, point in stragglers.select(SLICE_END, COUNTS_FROM).unique().iter_rows():
            self._points[slice_end].add(point)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Give the results of every horizon that event time has passed."""
        since, self._reached = self._reached, time
        slices, stragglers = (self._runs(ctx, state) for state in self.states)
        due = self._firings(since, time, slices, stragglers)
        gathered: dict[int, pl.DataFrame] = {}
        merged, size = True, 0
        for number, firing in enumerate(due):
            if spans := slices.spans(self.horizons.window.start(firing[1]), firing[1]):
                self._emit(gathered, merged, due, ctx)
                gathered, merged, size = {}, True, 0
                for span in spans:
                    part = self._of_span(*firing, span, slices, stragglers)
                    self._emit({number: part}, False, due, ctx)
                # It would hold what does not fit into memory.
                self._window = self._new_window()
                continue
            found, whole = self._gathered(*firing, slices, stragglers)
            gathered[number] = found
            merged, size = merged and whole, size + int(found.estimated_size())
            if size >= _MOST_BYTES:
                self._emit(gathered, merged, due, ctx)
                gathered, merged, size = {}, True, 0
        self._emit(gathered, merged, due, ctx)
        for runs in (slices, stragglers):
            done = list(takewhile(lambda end: self.horizons.last(end) <= time, runs.slice_ends()))
            if done:
                runs.drop_until(done[-1])
            for end in done:
                self._points.pop(end, None)

    def _firings(
        self, since: int, until: int, slices: RunsHandle, stragglers: RunsHandle
    ) -> list[tuple[int, int]]:
        """(horizon, window end) of every result that is due, in order."""
        if not self.horizons.between(since, until):
            return []
        ends = self.horizons.ends(slices.slice_ends(), since, until)
        due = {(end, end) for end in ends}
        for end in stragglers.slice_ends():
            due |= self.horizons.late_firings(end, self._points[end], since, until)
        return sorted(due)

    def _gathered(
        self, horizon: int, end: int, slices: RunsHandle, stragglers: RunsHandle
    ) -> tuple[pl.DataFrame, bool]:
        """The partials of one result; and whether they are one per key, sorted, already."""
        start = self.horizons.window.start(end)
        runs = stragglers.read(start, end)
        late = _counting(pl.concat(runs), MIN_TIME, horizon) if runs else []
        if horizon > end:
            in_time = slices.read(start, end)
            whole = self._plain([pl.concat(in_time), *late] if in_time else late)
            return whole.join(self._news(late, horizon), on=self.keys, how="semi"), False
        if self._window.takes_late:
            window = self._window.moved_to(start, end, slices, self._new(late))
            assert window is not None
            return window, self._window.merged
        window = self._window.moved_to(start, end, slices)
        if window is not None and not late:
            return window, self._window.merged
        return self._plain([*late, self._nothing if window is None else window]), False

    def _of_span(
        self, horizon: int, end: int, span: Span, slices: RunsHandle, stragglers: RunsHandle
    ) -> pl.DataFrame:
        """The partials of one result and a span of key groups, not merged yet."""
        start = self.horizons.window.start(end)
        late = stragglers.read_span(start, end, span)
        held = [rows for run in late for rows in _counting(run, MIN_TIME, horizon)]
        runs = self._plain([*slices.read_span(start, end, span), *held, self._nothing])
        return (
            runs
            if horizon == end
            else runs.join(self._news(held, horizon), on=self.keys, how="semi")
        )

    def _new(self, late: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
        """The stragglers that did not count yet when the last window fired."""
        if not late or self._window.until is None:
            return late[0] if late else None
        news = _counting(late[0], self._window.until, MAX_TIME)
        return news[0] if news else None

    def _plain(self, runs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        # Not `select`, which is a query: that takes longer than all else for few keys.
        return pl.concat(
            [pl.DataFrame([run.get_column(name) for name in self._columns]) for run in runs]
        )

    def _news(self, held: Sequence[pl.DataFrame], horizon: int) -> pl.DataFrame:
        """The keys that have news at a horizon: the others would say the same again."""
        since = horizon - self.horizons.every
        news = [rows for run in held for rows in _counting(run, since, horizon)]
        return pl.concat([run.select(self.keys) for run in (self._nothing, *news)]).unique()

    def _emit(
        self,
        gathered: Mapping[int, pl.DataFrame],
        merged: bool,
        due: Sequence[tuple[int, int]],
        ctx: Context,
    ) -> None:
        if any(part.height for part in gathered.values()):
            ctx.emit(self._results(self._merged(gathered, merged), due))

    def _merged(self, gathered: Mapping[int, pl.DataFrame], merged: bool) -> pl.DataFrame:
        """The partials of some firings, one per firing and key; `merged`: they are already."""
        numbers = np.repeat(list(gathered), [part.height for part in gathered.values()])
        rows = pl.concat(gathered.values()).with_columns(pl.Series(_FIRING, numbers))
        by = [_FIRING, *self.keys]
        return rows if merged else self.partials.merge(rows, by, []).sort(by)

    def _results(self, merged: pl.DataFrame, due: Sequence[tuple[int, int]]) -> pl.DataFrame:
        """The results of some firings, in their order."""
        numbers = merged.get_column(_FIRING).to_numpy()
        times = [(horizon, self.horizons.window.start(end), end) for horizon, end in due]
        # One NumPy look-up: a query per column takes longer than all else for few keys.
        horizons, starts, ends = np.array(times, dtype=np.int64)[numbers].T.copy()
        made = results(merged, self.keys, pl.Series(starts), pl.Series(ends), self.partials)
        again = horizons > ends
        if not again.any():
            return made
        nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, made.height)
        marks = pl.Series(horizons).zip_with(pl.Series(again), nulls)
        return made.with_columns(marks.alias(ROW_WATERMARK))

    def _runs(self, ctx: Context, descriptor: StateDescriptor) -> RunsHandle:
        return cast("RunsHandle", ctx.state(descriptor))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {
            "keys": ", ".join(self.keys),
            "window": str(self.horizons),
            "aggregates": str(self.partials),
        }


def _counting(stragglers: pl.DataFrame, after: int, until: int) -> list[pl.DataFrame]:
    """The stragglers with after < point <= until that they count from; nothing for none."""
    points = stragglers.get_column(COUNTS_FROM).to_numpy()
    counting = (after < points) & (points <= until)
    if counting.all():
        return [stragglers]
    return [stragglers.filter(pl.Series(counting))] if counting.any() else []
