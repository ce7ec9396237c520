"""Partials: the columns that a window aggregate keeps per key and slice, and how they combine.

rows      (keys, event_time, …)         --of_rows--> partials, one row per (key, slice)
partials  (keys, slice_end, <partials>) --merge-->   the same with one row per (key, slice)
partials                                --results--> one column per aggregate
partials                                --negated--> what takes them out of a merge again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.aggregates.accumulators import Accumulator, negated_parts
from engine.aggregates.cells import Cells
from engine.elements import KEY_GROUP, ROW_WATERMARK
from engine.errors import FunctionError
from engine.frames import without

ROWS = "partial.rows"
"""How many rows a fresh partial stands for: travels over the shuffle, is not kept in state."""

SHOWN = 200
"""Characters of a row that a message shows."""


class Partials:
    """The accumulators of one window aggregate, side by side."""

    def __init__(
        self, accumulators: Mapping[str, Accumulator], expressions: Mapping[str, pl.Expr]
    ) -> None:
        self._accumulators = dict(accumulators)
        # A plain column or a literal needs no query, which costs more than a small batch does.
        self._plain = {
            name: expression.meta.output_name()
            for name, expression in expressions.items()
            if expression.meta.is_column()
        }
        self._literal = {
            name: pl.select(expression).to_series()
            for name, expression in expressions.items()
            if expression.meta.is_literal()
        }
        self._computed = {
            name: expression
            for name, expression in expressions.items()
            if name not in self._plain and name not in self._literal
        }

    def __str__(self) -> str:
        return ", ".join(self._accumulators)

    @property
    def accumulators(self) -> Mapping[str, Accumulator]:
        """The accumulators by name."""
        return self._accumulators

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of all partial columns."""
        return {
            name: dtype
            for accumulator in self._accumulators.values()
            for name, dtype in accumulator.columns.items()
        }

    @property
    def defaults(self) -> Mapping[str, object]:
        """The partial of no values: what an aggregate begins with that a snapshot did not know."""
        return {
            name: value
            for accumulator in self._accumulators.values()
            for name, value in accumulator.neutral().items()
        }

    def of_rows(
        self,
        frame: pl.DataFrame,
        slice_end: pl.Series,
        keys: Sequence[str],
        also: Sequence[pl.Series] = (),
    ) -> pl.DataFrame:
        """Aggregate rows to one partial per key and slice, with the number of rows in `ROWS`.

        `also`: more columns that rows of one partial agree in.
        """
        values = self.values(frame)
        lifted = [
            column
            for name, accumulator in self._accumulators.items()
            for column in accumulator.lift(values[name])
        ]
        by = [*(frame.get_column(key) for key in keys), *also, slice_end]
        rows = pl.DataFrame([*by, *lifted])
        return self._reduce(rows, [column.name for column in by], {ROWS: pl.len().cast(pl.Int64)})

    def merge(
        self, frame: pl.DataFrame, by: Sequence[str], constant: Sequence[str]
    ) -> pl.DataFrame:
        """Combine partials that agree in `by`, and hence in `constant`; in no particular order."""
        return self._reduce(frame, by, {name: pl.col(name).first() for name in constant})

    def negated(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame | None:
        """Partials that, merged with others, take those of a frame out; None when inexact."""
        columns = negated_parts(list(self._accumulators.values()), frame)
        if columns is None:
            return None
        return pl.DataFrame([*(frame.get_column(name) for name in by), *columns])

    def cells(self) -> Mapping[str, Sequence[Cells]] | None:
        """Empty cells of each accumulator; None when some accumulator has none."""
        made = {name: each.cells() for name, each in self._accumulators.items()}
        if any(cells is None for cells in made.values()):
            return None
        return {name: cells for name, cells in made.items() if cells is not None}

    def results(self, frame: pl.DataFrame) -> list[pl.Series]:
        """One column of values per aggregate."""
        return [accumulator.result(frame) for accumulator in self._accumulators.values()]

    def result_types(self) -> Mapping[str, pl.DataType]:
        """Names and types of the aggregates themselves."""
        empty = pl.DataFrame(schema=dict(self.columns))
        return {column.name: column.dtype for column in self.results(empty)}

    def values(self, frame: pl.DataFrame) -> Mapping[str, pl.Series]:
        """What each aggregate is taken of, per row."""
        values = {name: frame.get_column(column) for name, column in self._plain.items()}
        for name, literal in self._literal.items():
            values[name] = literal.new_from_index(0, frame.height)
        if self._computed:
            computed = self._compute(frame)
            values |= {name: computed.get_column(name) for name in self._computed}
        return values

    def _compute(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Evaluate expressions, which see all columns but those that come and go with batches."""
        visible = without(frame, (ROW_WATERMARK, KEY_GROUP))
        try:
            return visible.with_columns(**self._computed)
        except pl.exceptions.PolarsError as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            row = repr(visible.row(0, named=True))[:SHOWN]
            msg = f"aggregate of {self} failed: {reason}: first row of the batch {row}"
            raise FunctionError(msg) from error

    def _reduce(
        self, frame: pl.DataFrame, by: Sequence[str], more: Mapping[str, pl.Expr]
    ) -> pl.DataFrame:
        reductions = [
            reduction
            for accumulator in self._accumulators.values()
            for reduction in accumulator.reduce(frame)
        ]
        reduced = frame.group_by(by).agg(*reductions, **more)
        finished = [
            column
            for accumulator in self._accumulators.values()
            for column in accumulator.finish(reduced)
        ]
        kept = [reduced.get_column(name) for name in (*by, *more)]
        return pl.DataFrame([*kept, *finished])
