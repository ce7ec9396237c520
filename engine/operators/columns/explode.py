"""Explode: one row per element of a list; the other columns, reserved ones too, are repeated.

    {"id": 7, "tags": ["a", "b"]}  ──tags──▶  {"id": 7, "tags": "a"}, {"id": 7, "tags": "b"}

Shapes   several columns are exploded side by side, so their lists must be equally long in each row.
         An empty list gives no row, a null one row with null, as in Polars.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import polars as pl

from engine.operators.contract import Context, Operator
from engine.operators.expressions import evaluate_rows


class Explode(Operator):
    """Makes rows of the elements of lists."""

    name: ClassVar[str] = "explode"

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Explode the lists of one batch."""
        ctx.emit(evaluate_rows(frame, self._apply, self.name))

    def _apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.explode(self.columns, empty_as_null=False, keep_nulls=True)

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"lists": ", ".join(self.columns)}
