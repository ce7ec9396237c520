"""Filter: the rows for which an expression is true; null counts as false."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from engine.frames import kept
from engine.operators.contract import Context, Operator
from engine.operators.expressions import values


class Filter(Operator):
    """Keeps rows by a Polars expression."""

    name: ClassVar[str] = "filter"

    def __init__(self, predicate: pl.Expr) -> None:
        self.predicate = predicate

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Keep the rows that the predicate is true for."""
        ctx.emit(kept(frame, values(frame, self.predicate, self.name)))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keeps": str(self.predicate)}
