"""Window aggregate: the half of a window aggregate that runs after the shuffle, with its state.

    on_batch       append the partials to the runs of their slices
    on_watermark   take every slice with end <= watermark, merge, emit results

Shapes   in   what `partial_aggregate` gives
         out  (keys…, window_start, window_end, one column per aggregate, event_time); the window's
              bounds are Datetime UTC, event_time is its last microsecond
Order    results leave sorted by (window_end, keys).
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
from engine.operators.partial_aggregate import LATE_ROWS
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
        self._slices = StateDescriptor("slices", StateKind.RUNS, dict(keys), partials.columns)

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """One state of runs: the partials per slice."""
        return (self._slices,)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Columns and types of the results."""
        bounds = {WINDOW_START: _UTC, WINDOW_END: _UTC}
        results = self.partials.result_types()
        return {**self._slices.keys, **bounds, **results, EVENT_TIME: pl.Int64()}

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
        ripe = self._runs(ctx).take_until(time)
        if ripe is not None:
            ctx.emit(self._results(ripe))

    def _runs(self, ctx: Context) -> RunsHandle:
        return cast("RunsHandle", ctx.state(self._slices))

    def _results(self, ripe: pl.DataFrame) -> pl.DataFrame:
        ripe = ripe.sort(SLICE_END, *self.keys)
        end = ripe.get_column(SLICE_END)
        return pl.DataFrame(
            [
                *(ripe.get_column(key) for key in self.keys),
                (end - self.window.size).cast(_UTC).alias(WINDOW_START),
                end.cast(_UTC).alias(WINDOW_END),
                *self.partials.results(ripe),
                (end - 1).alias(EVENT_TIME),
            ]
        )

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {
            "keys": ", ".join(self.keys),
            "window": str(self.window),
            "aggregates": str(self.partials),
        }
