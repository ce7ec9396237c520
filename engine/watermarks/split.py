"""The watermarks of one split: stamps its rows with event time, and with how late they are."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, ROW_WATERMARK, Micros
from engine.kernels import active
from engine.watermarks.generators import Json, watermarks_of
from engine.watermarks.strategy import WatermarkStrategy
from engine.watermarks.times import event_times

Times = NDArray[np.int64]


class SplitWatermarks:
    """Stamps the rows of one split, in order. A snapshot holds its watermark, and its `state`."""

    def __init__(
        self, strategy: WatermarkStrategy, watermark: Micros = MIN_TIME, state: Json = None
    ) -> None:
        self._strategy = strategy
        self._generator = deepcopy(strategy.generator)
        if self._generator is not None and state is not None:
            self._generator.restore(state)
        self.watermark = watermark
        self._newest: Micros | None = None

    @property
    def state(self) -> Json:
        """What a generator of the author's remembers; None for others."""
        return None if self._generator is None else self._generator.state

    @property
    def newest(self) -> Micros | None:
        """The largest event time so far; None before the first row."""
        if self._generator is not None or self.watermark in (MIN_TIME, MAX_TIME):
            return self._newest
        return Micros(self.watermark + self._strategy.bound)

    def stamp(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with `event_time`, and `row_watermark` if any is behind."""
        times = event_times(frame, self._strategy.column, self._strategy.unit)
        values = times.to_numpy()
        stamped = _with_column(frame, times.alias(EVENT_TIME))
        if self._generator is None:
            row_watermarks = self._bounded(values)
        else:
            row_watermarks = self._promised(watermarks_of(self._generator, stamped).to_numpy())
            self._newest = Micros(max(int(values.max()), self._newest or MIN_TIME))
        if row_watermarks is None or not (behind := values < row_watermarks).any():
            return stamped
        return _with_column(stamped, _row_watermarks(row_watermarks, behind))

    def _bounded(self, times: Times) -> Times | None:
        """The watermark behind each row; that of a row in time is never ahead of the row itself.

        None when all rows are in time.
        """
        before, bound = self.watermark, self._strategy.bound
        watermark, behind = active().running_watermark(times, bound, before)
        self.watermark = Micros(watermark)
        return np.maximum(np.maximum.accumulate(times) - bound, before) if behind else None

    def _promised(self, watermarks: Times) -> Times:
        """The watermark before each row: its own one is about the rows after it."""
        passed: Times = np.maximum.accumulate(np.insert(watermarks, 0, self.watermark))
        self.watermark = Micros(int(passed[-1]))
        return passed[:-1]


def _with_column(frame: pl.DataFrame, column: pl.Series) -> pl.DataFrame:
    """Add a column, without the query that `with_columns` plans."""
    if column.name in frame.columns:
        return frame.with_columns(column)
    return frame.hstack([column])


def _row_watermarks(watermarks: Times, behind: NDArray[np.bool_]) -> pl.Series:
    marks = pl.Series(ROW_WATERMARK, watermarks)
    nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(marks))
    return marks.zip_with(pl.Series(behind), nulls)
