"""The watermarks of one split: stamps its rows with event time, and with how late they are."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, ROW_WATERMARK, Micros
from engine.watermarks.strategy import WatermarkStrategy
from engine.watermarks.times import event_times


class SplitWatermarks:
    """Stamps the rows of one split, in order. Its whole state is one watermark."""

    def __init__(self, strategy: WatermarkStrategy, watermark: Micros = MIN_TIME) -> None:
        self._strategy = strategy
        self.watermark = watermark

    @property
    def newest(self) -> Micros | None:
        """The largest event time so far; None before the first row."""
        if self.watermark in (MIN_TIME, MAX_TIME):
            return None
        return Micros(self.watermark + self._strategy.bound)

    def stamp(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows with `event_time`, and `row_watermark` if any is behind."""
        times = event_times(frame, self._strategy.column, self._strategy.unit)
        values = times.to_numpy()
        row_watermarks = np.maximum(
            np.maximum.accumulate(values) - self._strategy.bound, self.watermark
        )
        self.watermark = Micros(int(row_watermarks[-1]))
        stamped = frame.with_columns(times.alias(EVENT_TIME))
        behind = values < row_watermarks
        if not behind.any():
            return stamped
        return stamped.with_columns(_row_watermarks(row_watermarks, behind))


def _row_watermarks(watermarks: NDArray[np.int64], behind: NDArray[np.bool_]) -> pl.Series:
    marks = pl.Series(ROW_WATERMARK, watermarks)
    nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(marks))
    return marks.zip_with(pl.Series(behind), nulls)
