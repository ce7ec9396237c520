"""Partials: the columns that a window aggregate keeps per key and slice, and how they combine.

rows      (keys, event_time, …)         --of_rows--> partials, one row per (key, slice)
partials  (keys, slice_end, <partials>) --merge-->   the same with one row per (key, slice)
partials                                --results--> (keys, slice_end, one column an aggregate)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates.accumulators import Accumulator
from engine.state.contract import SLICE_END

ROWS = "partial.rows"
"""How many rows a fresh partial stands for: travels over the shuffle, is not kept in state."""


class Partials:
    """The accumulators of one window aggregate, side by side."""

    def __init__(
        self, accumulators: Mapping[str, Accumulator], expressions: Mapping[str, pl.Expr]
    ) -> None:
        self._accumulators = dict(accumulators)
        self._expressions = dict(expressions)

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of all partial columns."""
        return {
            name: dtype
            for accumulator in self._accumulators.values()
            for name, dtype in accumulator.columns.items()
        }

    def __str__(self) -> str:
        return ", ".join(self._accumulators)

    def of_rows(
        self, frame: pl.DataFrame, slice_end: pl.Series, keys: Sequence[str]
    ) -> pl.DataFrame:
        """Aggregate rows to one partial per key and slice, with the number of rows in `ROWS`."""
        # Not `select`: a frame of literals would have one row.
        values = frame.with_columns(**self._expressions)
        lifted = [
            column
            for name, accumulator in self._accumulators.items()
            for column in accumulator.lift(values.get_column(name))
        ]
        rows = pl.DataFrame([*(frame.get_column(key) for key in keys), slice_end, *lifted])
        return self._reduce(rows, [*keys, SLICE_END], [pl.len().cast(pl.Int64).alias(ROWS)])

    def merge(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Combine partials that agree in the columns `by`; in no particular order."""
        return self._reduce(frame, by, [])

    def _reduce(
        self, frame: pl.DataFrame, by: Sequence[str], more: Sequence[pl.Expr]
    ) -> pl.DataFrame:
        reductions = [
            reduction
            for accumulator in self._accumulators.values()
            for reduction in accumulator.reduce(frame)
        ]
        reduced = frame.group_by(by).agg(*reductions, *more)
        for accumulator in self._accumulators.values():
            reduced = accumulator.finish(reduced)
        return reduced.select(*by, *self.columns, *(expr.meta.output_name() for expr in more))

    def result_types(self) -> Mapping[str, pl.DataType]:
        """Names and types of the aggregates themselves."""
        empty = pl.DataFrame(schema=dict(self.columns))
        return {column.name: column.dtype for column in self.results(empty)}

    def results(self, frame: pl.DataFrame) -> list[pl.Series]:
        """One column of values per aggregate."""
        return [accumulator.result(frame) for accumulator in self._accumulators.values()]
