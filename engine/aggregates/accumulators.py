"""Accumulators: how one aggregate is kept as mergeable partials.

    rows --lift--> columns --reduce, finish--> partial
    partials       --reduce, finish--> partial      any number of times, in any order
    partial  --result--> value
    partial  --negated--> what takes it out of a merge again, where that is exact

Order    every reduction is commutative and exact, so no output bit depends on how rows were
         batched, spread over subtasks, or merged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from engine.aggregates import exact
from engine.aggregates.cells import Cells, CountCells, ExactSumCells, ExtremeCells, WholeSumCells

_LIMBS = ("0", "1", "2", "3")


class Accumulator(ABC):
    """The partial columns of one aggregate, all named after it."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""

    @abstractmethod
    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn the values of single rows into partial columns."""

    @abstractmethod
    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the partial columns of a group."""

    def finish(self, frame: pl.DataFrame) -> Sequence[pl.Series]:
        """The partial columns in their lasting form, of columns that were reduced."""
        return [frame.get_column(name) for name in self.columns]

    def neutral(self) -> Mapping[str, object]:
        """The partial of no values, as plain JSON: what merging with changes nothing."""
        lifted = pl.DataFrame(self.lift(pl.Series([None], dtype=pl.Null)))
        reduced = lifted.group_by(pl.lit(0)).agg(self.reduce(lifted))
        columns = self.finish(reduced)
        return {column.name: column.to_list()[0] for column in columns}

    def negated(self, frame: pl.DataFrame) -> Sequence[pl.Series] | None:
        """Partials that take those of a frame out of a merge again; None when that is not exact.

        An accumulator that says None of an empty frame says so always.
        """
        return None

    @abstractmethod
    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""

    def cells(self) -> Sequence[Cells] | None:
        """Empty cells that give the partial columns one after the other; None: not kept so."""
        return None


class Count(Accumulator):
    """How many values are not null."""

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {self.name: pl.Int64()}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn the values of single rows into partial columns."""
        if values.null_count():
            return [values.is_not_null().cast(pl.Int64).alias(self.name)]
        return [pl.Series(self.name, np.ones(len(values), dtype=np.int64))]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the partial columns of a group."""
        return [pl.col(self.name).sum()]

    def negated(self, frame: pl.DataFrame) -> Sequence[pl.Series] | None:
        """The same with the other sign."""
        return [-frame.get_column(self.name)]

    def cells(self) -> Sequence[Cells] | None:
        """One array of cells."""
        return [CountCells(self.name)]

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""
        return frame.get_column(self.name)


class WholeSum(Accumulator):
    """The sum of integers or booleans, in 64 bits."""

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {self.name: pl.Int64()}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn the values of single rows into partial columns."""
        whole = values.cast(pl.Int64)
        return [(whole.fill_null(0) if whole.null_count() else whole).alias(self.name)]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the partial columns of a group."""
        return [pl.col(self.name).sum()]

    def negated(self, frame: pl.DataFrame) -> Sequence[pl.Series] | None:
        """The same with the other sign."""
        return [-frame.get_column(self.name)]

    def cells(self) -> Sequence[Cells] | None:
        """One array of cells."""
        return [WholeSumCells(self.name)]

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""
        return frame.get_column(self.name)


class ExactSum(Accumulator):
    """The sum of floats, rounded once: see `exact`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._limbs = [f"{name}.{limb}" for limb in _LIMBS]
        self._special, self._rest = f"{name}.special", f"{name}.rest"

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        limbs = {limb: pl.Int64() for limb in self._limbs}
        return limbs | {self._special: pl.Float64(), self._rest: pl.Binary()}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn the values of single rows into partial columns."""
        parts = exact.split(values.cast(pl.Float64))
        return [part.alias(name) for part, name in zip(parts, self.columns, strict=True)]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the partial columns of a group."""
        sums = [pl.col(name).sum() for name in (*self._limbs, self._special)]
        if frame.get_column(self._rest).null_count() == frame.height:
            return sums
        return [*sums, pl.col(self._rest).drop_nulls()]

    def finish(self, frame: pl.DataFrame) -> Sequence[pl.Series]:
        """Carry, so that equal sums have equal limbs."""
        if self._rest in frame.columns:
            rest = exact.add_rests(frame.get_column(self._rest))
        else:
            rest = exact.no_rests(frame.height)
        *limbs, rest = exact.carry([frame.get_column(limb) for limb in self._limbs], rest)
        parts = [*limbs, frame.get_column(self._special), rest]
        return [part.alias(name) for part, name in zip(parts, self.columns, strict=True)]

    def negated(self, frame: pl.DataFrame) -> Sequence[pl.Series] | None:
        """All parts with the other sign; None when a sum is not finite."""
        special, rest = frame.get_column(self._special), frame.get_column(self._rest)
        if (special.to_numpy() != 0.0).any():
            return None
        limbs = [-frame.get_column(limb) for limb in self._limbs]
        return [*limbs, special, exact.negated_rests(rest).alias(self._rest)]

    def whole(self, frame: pl.DataFrame) -> list[int | None]:
        """The exact sums in units of 2^-1074; None where they are not finite."""
        limbs = [frame.get_column(limb) for limb in self._limbs]
        return exact.whole(limbs, frame.get_column(self._special), frame.get_column(self._rest))

    def cells(self) -> Sequence[Cells] | None:
        """One array of cells."""
        return [ExactSumCells(list(self.columns))]

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""
        limbs = [frame.get_column(limb) for limb in self._limbs]
        special, rest = frame.get_column(self._special), frame.get_column(self._rest)
        return exact.result(limbs, special, rest).alias(self.name)


class Compound(Accumulator):
    """Several accumulators of the same values, side by side."""

    def __init__(self, name: str, parts: Sequence[Accumulator]) -> None:
        super().__init__(name)
        self._parts = parts

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {name: dtype for part in self._parts for name, dtype in part.columns.items()}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn the values of single rows into partial columns."""
        return [column for part in self._parts for column in part.lift(values)]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the partial columns of a group."""
        return [column for part in self._parts for column in part.reduce(frame)]

    def finish(self, frame: pl.DataFrame) -> Sequence[pl.Series]:
        """The partial columns in their lasting form."""
        return [column for part in self._parts for column in part.finish(frame)]

    def negated(self, frame: pl.DataFrame) -> Sequence[pl.Series] | None:
        """Those of each part; None when one of them cannot."""
        return negated_parts(self._parts, frame)

    def cells(self) -> Sequence[Cells] | None:
        """Those of each part; None when one of them has none."""
        found = [part.cells() for part in self._parts]
        if any(cells is None for cells in found):
            return None
        return [each for cells in found if cells is not None for each in cells]


class Mean(Compound):
    """Sum over count of the values that are not null; null when there are none."""

    def __init__(self, name: str, total: type[ExactSum | WholeSum]) -> None:
        self._sum = total(f"{name}.sum")
        self._count = Count(f"{name}.count")
        super().__init__(name, (self._sum, self._count))

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""
        count = self._count.result(frame)
        total = self._sum.result(frame).cast(pl.Float64)
        # 0 / 0 would be NaN, which is not the same as "no value".
        return (total / count.replace(0, None)).alias(self.name)


class Extreme(Accumulator):
    """The smallest or largest value that is not null; null when there are none."""

    def __init__(self, name: str, dtype: pl.DataType, *, largest: bool) -> None:
        super().__init__(name)
        self._dtype = dtype
        self._largest = largest

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {self.name: self._dtype}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn the values of single rows into partial columns."""
        return [unsigned_zeros(values).cast(self._dtype).alias(self.name)]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Aggregations that merge the partial columns of a group."""
        column = pl.col(self.name)
        return [column.max() if self._largest else column.min()]

    def cells(self) -> Sequence[Cells] | None:
        """One array of cells, when all values are floats or integers of 64 bits inside."""
        whole = self._dtype.is_signed_integer() or self._dtype.is_temporal()
        unsigned = self._dtype in (pl.UInt8, pl.UInt16, pl.UInt32)
        if self._dtype == pl.Int128 or not (whole or unsigned or self._dtype.is_float()):
            return None
        return [ExtremeCells(self.name, self._dtype, largest=self._largest)]

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The value of the aggregate, one per partial."""
        return frame.get_column(self.name)


def negated_parts(parts: Sequence[Accumulator], frame: pl.DataFrame) -> Sequence[pl.Series] | None:
    """The columns of `negated` of several accumulators; None when one of them cannot."""
    found = [part.negated(frame) for part in parts]
    if any(columns is None for columns in found):
        return None
    return [column for columns in found if columns is not None for column in columns]


def unsigned_zeros(values: pl.Series) -> pl.Series:
    """Make -0.0 into 0.0: equal values must not differ in their bits."""
    if not values.dtype.is_float():
        return values
    if not (values == 0).any():
        return values
    value = pl.col(values.name)
    # Not `+ 0.0`, which Polars leaves out as doing nothing.
    return values.to_frame().select(pl.when(value == 0).then(0.0).otherwise(value)).to_series()
