"""Project: new columns from expressions, and which columns stay; reserved columns always do.

Shapes   select, with_columns, rename and drop are all of this form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import polars as pl

from engine.frames import chosen
from engine.operators.contract import Context, Operator
from engine.operators.expressions import evaluate


class Project(Operator):
    """Computes columns from the columns of the same row."""

    name: ClassVar[str] = "project"

    def __init__(self, step: str, expressions: Sequence[pl.Expr], columns: Sequence[str]) -> None:
        """`columns`: names that leave, in order, with `event_time` if the stream has it."""
        self.step = step
        self.expressions = tuple(expressions)
        self.columns = tuple(columns)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Evaluate all expressions on one batch."""
        ctx.emit(evaluate(frame, self._apply, self.step))

    def _apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        made = frame.with_columns(*self.expressions) if self.expressions else frame
        return chosen(made, self.columns)

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"columns": ", ".join(self.columns)}
