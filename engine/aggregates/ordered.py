"""First and last: the value at one end of event time, as a mergeable partial.

Order    ties are broken by value: the first takes the smallest value of the smallest time, the last
         the largest value of the largest time. So the order in which rows come plays no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates.accumulators import Accumulator, unsigned_zeros


class AtTime(Accumulator):
    """The value that is not null at the smallest or largest event time."""

    def __init__(self, name: str, dtype: pl.DataType, *, latest: bool) -> None:
        super().__init__(name)
        self._time = f"{name}.time"
        self._dtype = dtype
        self._latest = latest

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {self.name: self._dtype, self._time: pl.Int64()}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn pairs of time and value into partial columns."""
        pairs = values.struct.unnest()
        value, time = pairs.get_column("value"), pairs.get_column("time")
        if value.null_count():
            nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(time))
            time = time.zip_with(value.is_not_null(), nulls)
        return [unsigned_zeros(value).cast(self._dtype).alias(self.name), time.alias(self._time)]

    def neutral(self) -> Mapping[str, object]:
        """No time, no value."""
        return dict.fromkeys(self.columns)

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the partial columns of a group."""
        time, value = pl.col(self._time), pl.col(self.name)
        at = time.max() if self._latest else time.min()
        ties = value.filter(time == at)
        return [ties.max() if self._latest else ties.min(), at]

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""
        return frame.get_column(self.name)
