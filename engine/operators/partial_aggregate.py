"""Partial aggregate: the half of a window aggregate that runs before the shuffle.

    rows of a batch --slice by event time, group--> one partial per (key, slice) --> hash edge

Shapes   in   rows with `event_time`
         out  (key_group, keys…, slice_end, <partials>, partial.rows); late rows under "late"
Late     a row is late when its own split's watermark had reached the end of its window, or when
         this operator's had, which differs only after a split was idle.
Cost     what crosses the shuffle is one row per key and slice of a batch, so a hot key costs no
         more than another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import polars as pl

from engine.aggregates import Partials
from engine.elements import EVENT_TIME, ROW_WATERMARK
from engine.errors import FunctionError
from engine.keygroups import key_groups
from engine.operators.contract import Context, Operator
from engine.operators.expressions import short_row
from engine.state.contract import SLICE_END
from engine.windows import Tumbling

LATE = "late"
"""The tag of rows that came after their window."""

LATE_ROWS = "numLateRecordsDropped"
"""The counter of late rows: dropped, unless a side output takes them."""


class PartialAggregate(Operator):
    """Gathers rows of one batch per key and slice."""

    name: ClassVar[str] = "partial_aggregate"

    def __init__(self, keys: Sequence[str], window: Tumbling, partials: Partials) -> None:
        self.keys = tuple(keys)
        self.window = window
        self.partials = partials

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Set late rows aside, and gather the others per key and slice."""
        ends = pl.Series(SLICE_END, self.window.slice_ends(frame.get_column(EVENT_TIME).to_numpy()))
        late = self._late(frame, ends, ctx)
        if late.any():
            ctx.emit(frame.filter(late), LATE)
            ctx.count(LATE_ROWS, int(late.sum()))
            frame, ends = frame.filter(~late), ends.filter(~late)
        if frame.height:
            partial = self._partial(frame, ends)
            groups = key_groups(partial, self.keys, ctx.max_parallelism)
            ctx.emit(partial.insert_column(0, groups))

    def _late(self, frame: pl.DataFrame, ends: pl.Series, ctx: Context) -> pl.Series:
        late = ends <= ctx.watermark
        if ROW_WATERMARK not in frame.columns:
            return late
        # Null where a row is not behind its split at all.
        own = (ends <= frame.get_column(ROW_WATERMARK)).fill_null(value=False)
        return late | own

    def _partial(self, frame: pl.DataFrame, ends: pl.Series) -> pl.DataFrame:
        try:
            return self.partials.of_rows(frame, ends, self.keys)
        except pl.exceptions.PolarsError as error:
            msg = f"aggregate failed: {error}: first row of the batch {short_row(frame)}"
            raise FunctionError(msg) from error

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keys": ", ".join(self.keys), "window": str(self.window)}
