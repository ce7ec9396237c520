"""Partial aggregate: the half of a window aggregate that runs before the shuffle.

    rows of batches --slice by event time, gather--> one partial per (key, slice) --> hash edge

Gathers  over batches, until the watermark passes the slice, a barrier or idleness comes, or there
         is much; where an aggregate has no cells, and for stragglers, over each batch.
Shapes   in   rows with `event_time`
         out  (key_group, keys…, [partial.from,] slice_end, <partials>, partial.rows); the optional
              column when some row counts later than its first window fires; late rows under "late"
Late     a row is late when its own split's watermark had reached the end of its last window and
         the allowed lateness, or when this operator's had, which differs only after a split was
         idle.
Cost     what crosses the shuffle is one row per key and slice, so a hot key costs no more than
         another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import polars as pl

from engine.aggregates import Partials
from engine.aggregates.cells import Flags
from engine.elements import EVENT_TIME, ROW_WATERMARK, Micros
from engine.errors import FunctionError
from engine.frames import kept, present
from engine.keygroups import key_groups
from engine.operators.contract import Context, Operator
from engine.operators.expressions import short_row
from engine.operators.late import LATE, LATE_ROWS, row_marks
from engine.operators.windows.horizons import Horizons
from engine.operators.windows.panes import Panes
from engine.state.contract import SLICE_END
from engine.windows import Times

COUNTS_FROM = "partial.from"
"""The horizon from which a straggler counts."""


class PartialAggregate(Operator):
    """Gathers rows per key and slice."""

    name: ClassVar[str] = "partial_aggregate"
    compiled: ClassVar[bool] = True

    def __init__(self, keys: Sequence[str], horizons: Horizons, partials: Partials) -> None:
        self.keys = tuple(keys)
        self.horizons = horizons
        self.partials = partials
        self._panes: Panes | None = None

    def open(self, ctx: Context) -> None:
        """Gather over batches, if all aggregates can be kept in cells."""
        cells, grid = self.partials.cells(), self.horizons.window.grid
        if cells is not None:
            self._panes = Panes(self.keys, grid, cells, ctx.max_parallelism, ctx.emit)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Set late rows aside, and gather the others per key and slice."""
        panes = self._panes
        apart = frame if panes is None else left_over(panes, self.partials, frame, ctx.watermark)
        if apart.height:
            self._by_batch(apart, ctx)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Send on what windows that fire now are made of."""
        if self._panes is not None:
            self._panes.flush_until(time)

    def flush(self, ctx: Context) -> None:
        """Send everything on."""
        if self._panes is not None:
            self._panes.flush()

    def _by_batch(self, frame: pl.DataFrame, ctx: Context) -> None:
        """Look at each row for itself, and send the partials of these rows on."""
        times = frame.get_column(EVENT_TIME).to_numpy()
        ends = self.horizons.window.slice_ends(times)
        marks = row_marks(frame, ctx.watermark)
        if marks is None and ctx.watermark < ends.min():
            emit_partials(frame, ends, None, self.partials, self.keys, ctx)
            return
        counts_from = self.horizons.counts_from(
            ends, np.full_like(ends, ctx.watermark) if marks is None else marks
        )
        late = counts_from > self.horizons.last(ends)
        if late.any():
            ctx.emit(kept(frame, pl.Series(late)), LATE)
            ctx.count(LATE_ROWS, int(late.sum()))
            frame = kept(frame, pl.Series(~late))
            ends, counts_from = ends[~late], counts_from[~late]
        held = bool((counts_from > self.horizons.window.first_ends(ends)).any())
        counting = counts_from if held else None
        emit_partials(frame, ends, counting, self.partials, self.keys, ctx)

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keys": ", ".join(self.keys), "window": str(self.horizons)}


def left_over(
    panes: Panes, partials: Partials, frame: pl.DataFrame, watermark: Micros
) -> pl.DataFrame:
    """Gather the rows of a batch in panes; those that cannot be are returned."""
    values = partials.values(frame)
    apart = _either(panes.outside(values), _behind(frame))
    usual = frame
    if apart is not None:
        usual = kept(frame, ~apart)
        values = {name: column.filter(~apart) for name, column in values.items()}
    try:
        if not usual.height or not panes.add(usual, values, watermark):
            return frame
    except pl.exceptions.PolarsError as error:
        raise _failed(error, frame) from error
    return usual.clear() if apart is None else kept(frame, apart)


def _behind(frame: pl.DataFrame) -> Flags | None:
    """Which rows are behind the watermark of their split; None for no row."""
    if ROW_WATERMARK not in frame.columns:
        return None
    return present(frame.get_column(ROW_WATERMARK))


def _either(one: Flags | None, other: Flags | None) -> pl.Series | None:
    found = [rows for rows in (one, other) if rows is not None]
    return pl.Series(np.logical_or.reduce(found)) if found else None


def emit_partials(
    frame: pl.DataFrame,
    ends: Times,
    counts_from: Times | None,
    partials: Partials,
    keys: Sequence[str],
    ctx: Context,
) -> None:
    """Send on what some rows give, by the ends of their slices. Raises FunctionError.

    `counts_from`: of each row; None for those in time.
    """
    if not frame.height:
        return
    also = [] if counts_from is None else [pl.Series(COUNTS_FROM, counts_from)]
    partial = aggregated(partials, frame, pl.Series(SLICE_END, ends), keys, also)
    ctx.emit(partial.insert_column(0, key_groups(partial, keys, ctx.max_parallelism)))


def aggregated(
    partials: Partials,
    frame: pl.DataFrame,
    slice_end: pl.Series,
    keys: Sequence[str],
    also: Sequence[pl.Series],
) -> pl.DataFrame:
    """The partials of some rows. Raises FunctionError."""
    try:
        return partials.of_rows(frame, slice_end, keys, also)
    except pl.exceptions.PolarsError as error:
        raise _failed(error, frame) from error


def _failed(error: Exception, frame: pl.DataFrame) -> FunctionError:
    return FunctionError(f"aggregate failed: {error}: first row of the batch {short_row(frame)}")
