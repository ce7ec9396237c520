"""Quantiles: a sketch that is a count per bucket of nearly equal values.

    bits of a float:  sign | exponent | mantissa, cut to a few bits  =  bucket

Buckets are fixed, so sketches merge by adding counts: exactly, in any order. Cutting bits instead
of taking a logarithm makes them the same on every machine.

Shapes   a partial is two lists of equal length, sorted by bucket: bucket numbers, counts.
Units    a bucket is at most twice `accuracy` wide, relative to its values; its middle stands for
         them. Numbers too small for a normal float count as 0; NaN is left out.
Source   Masson, Rim, Lee, DDSketch, VLDB 2019; buckets as in Tene's HdrHistogram.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
import polars as pl

from engine.aggregates.accumulators import Accumulator

_MANTISSA_BITS = 52
_MAGNITUDE = np.int64(2**63 - 1)
_WHOLE = pl.List(pl.Int64())


class Quantile(Accumulator):
    """The value at a share of the sorted values that are not null, by nearest rank."""

    def __init__(self, name: str, q: float, accuracy: float) -> None:
        super().__init__(name)
        self._buckets, self._counts = f"{name}.buckets", f"{name}.counts"
        # As people write it: 0.07 of 100 values is 7 of them, not the 8 that rounding up gives.
        self._q = Fraction(str(q))
        kept = next(bits for bits in range(_MANTISSA_BITS) if 2.0 ** -(bits + 1) <= accuracy)
        self._shift = _MANTISSA_BITS - kept

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {self._buckets: _WHOLE, self._counts: _WHOLE}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn values into buckets, each counted once."""
        floats = values.cast(pl.Float64)
        known = (floats.is_not_null() & floats.is_not_nan()).fill_null(value=False)
        numbers = floats.fill_null(0.0).to_numpy()
        buckets = (numbers.view(np.int64) & _MAGNITUDE) >> self._shift
        signed = pl.Series(self._buckets, np.where(numbers < 0, -buckets, buckets))
        nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, len(values))
        ones = pl.Series([1], dtype=pl.Int64).new_from_index(0, len(values))
        return [signed.zip_with(known, nulls), ones.zip_with(known, nulls).alias(self._counts)]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Put the buckets of a group side by side; `finish` adds them up."""
        pair = [pl.col(self._buckets), pl.col(self._counts)]
        if isinstance(frame.schema[self._buckets], pl.List):
            pair = [column.explode() for column in pair]
        return [column.drop_nulls() for column in pair]

    def finish(self, frame: pl.DataFrame) -> Sequence[pl.Series]:
        """One count per bucket, sorted by bucket."""
        numbered = frame.select(self._buckets, self._counts).with_row_index("row")
        single = numbered.explode(self._buckets, self._counts).drop_nulls()
        added = single.group_by("row", self._buckets).agg(pl.col(self._counts).sum())
        # Counts of nothing are left when some were taken out again.
        ordered = added.filter(pl.col(self._counts) != 0).sort("row", self._buckets)
        lists = ordered.group_by("row", maintain_order=True).agg(self._buckets, self._counts)
        found = numbered.select("row").join(lists, on="row", how="left", maintain_order="left")
        empty = pl.lit([], dtype=_WHOLE)
        return found.select(pl.col(name).fill_null(empty) for name in self.columns).get_columns()

    def negated(self, frame: pl.DataFrame) -> Sequence[pl.Series] | None:
        """The same buckets with negative counts."""
        counts = frame.get_column(self._counts).list.eval(-pl.element())
        return [frame.get_column(self._buckets), counts]

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The middle of the bucket that holds the rank."""
        pairs = zip(
            frame.get_column(self._buckets).to_list(),
            frame.get_column(self._counts).to_list(),
            strict=True,
        )
        found = [self._bucket(buckets, counts) for buckets, counts in pairs]
        return self._middles(pl.Series(self.name, found, dtype=pl.Int64))

    def _bucket(self, buckets: Sequence[int], counts: Sequence[int]) -> int | None:
        rank = max(1, -(-self._q.numerator * sum(counts) // self._q.denominator))
        reached = zip(accumulate(counts), buckets, strict=True)
        return next((bucket for count, bucket in reached if count >= rank), None)

    def _middles(self, buckets: pl.Series) -> pl.Series:
        numbers = buckets.fill_null(0).to_numpy()
        low = np.abs(numbers) << self._shift
        middle = (low + (np.int64(1) << (self._shift - 1))).view(np.float64)
        # The last bucket holds infinity alone, and the first what is too small.
        bounded = np.where(np.isinf(low.view(np.float64)), np.inf, middle)
        signed = np.where(numbers == 0, 0.0, np.copysign(bounded, numbers))
        nulls = pl.Series([None], dtype=pl.Float64).new_from_index(0, len(buckets))
        return pl.Series(self.name, signed).zip_with(buckets.is_not_null(), nulls)
