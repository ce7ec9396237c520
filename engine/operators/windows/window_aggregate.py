"""Window aggregate: the half of a window aggregate that runs after the shuffle, with its state.

    on_batch       append the partials to the runs of their slices
    on_watermark   take every slice with end <= watermark, merge, emit results

Shapes   in   what `partial_aggregate` gives
         out  (keys…, window_start, window_end, one column per aggregate, event_time); the window's
              bounds are Datetime UTC, event_time is its last microsecond
Order    results leave sorted by (window_end, keys); those of a window that is too large for its
         memory, some key groups at a time.
Late     partials of a window that has fired, possible only after an input was idle, are dropped and
         counted by the rows they stand for.
Source   Traub et al., Scotty: Efficient Window Aggregation, ICDE 2018 (slices).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import polars as pl

from engine.aggregates import ROWS, Partials
from engine.elements import EVENT_TIME, Micros
from engine.operators.contract import Context, Operator
from engine.operators.late import LATE_ROWS
from engine.state.contract import SLICE_END, StateDescriptor, StateKind
from engine.state.handles import RunsHandle
from engine.windows import Tumbling

WINDOW_START = "window_start"
WINDOW_END = "window_end"
_UTC = pl.Datetime("us", "UTC")


class WindowAggregate(Operator):
    """Merges partials per key and window, and gives the results when event time has passed it."""

    name: ClassVar[str] = "window_aggregate"

    def __init__(
        self, keys: Mapping[str, pl.DataType], window: Tumbling, partials: Partials
    ) -> None:
        self.keys = tuple(keys)
        self.window = window
        self.partials = partials
        self._slices = StateDescriptor(
            "slices", StateKind.RUNS, dict(keys), partials.columns, partials.defaults
        )

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """One state of runs: the partials per slice."""
        return (self._slices,)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Columns and types of the results."""
        return result_schema(self._slices.keys, self.partials)

    def open(self, ctx: Context) -> None:
        """Tell the state how partials merge."""
        self._runs(ctx).merge_with(self.partials.merge)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Keep partials of windows that have not fired."""
        fired = frame.get_column(SLICE_END) <= ctx.watermark
        if fired.any():
            ctx.count(LATE_ROWS, int(frame.get_column(ROWS).filter(fired).sum()))
            frame = frame.filter(~fired)
        self._runs(ctx).append(frame)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Fire every window that event time has passed."""
        for part in self._runs(ctx).take_parts(time):
            end = part.get_column(SLICE_END)
            # Sorting by one column is several times as fast as by two.
            by = self.keys if end[0] == end[-1] and end.n_unique() == 1 else (SLICE_END, *self.keys)
            ripe = part.sort(by)
            end = ripe.get_column(SLICE_END)
            ctx.emit(results(ripe, self.keys, end - self.window.size, end, self.partials))

    def _runs(self, ctx: Context) -> RunsHandle:
        return cast("RunsHandle", ctx.state(self._slices))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {
            "keys": ", ".join(self.keys),
            "window": str(self.window),
            "aggregates": str(self.partials),
        }


def result_schema(keys: Mapping[str, pl.DataType], partials: Partials) -> dict[str, pl.DataType]:
    """Columns and types of what windows give."""
    bounds = {WINDOW_START: _UTC, WINDOW_END: _UTC}
    return {**keys, **bounds, **partials.result_types(), EVENT_TIME: pl.Int64()}


def results(
    merged: pl.DataFrame, keys: Sequence[str], start: pl.Series, end: pl.Series, partials: Partials
) -> pl.DataFrame:
    """The results of merged partials, one window each."""
    return pl.DataFrame(
        [
            *(merged.get_column(key) for key in keys),
            start.cast(_UTC).alias(WINDOW_START),
            end.cast(_UTC).alias(WINDOW_END),
            *partials.results(merged),
            (end - 1).alias(EVENT_TIME),
        ]
    )
