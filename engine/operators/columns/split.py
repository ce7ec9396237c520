"""Split: each row goes to the first side output whose predicate it meets, or on with the rest.

    rows ──┬─ big:     amount > 1000 ──▶ side output "big"
           ├─ foreign: currency != "EUR" ──▶ side output "foreign"
           └─ none of them ──▶ the stream itself

Shapes   all outputs have the columns of the input. A predicate that is null counts as false.
Cost     one pass for all predicates, and a filter per output that gets rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import polars as pl

from engine.frames import kept
from engine.operators.contract import MAIN, Context, Operator
from engine.operators.expressions import values


class Split(Operator):
    """Deals rows out by predicates, tried in order."""

    name: ClassVar[str] = "split"

    def __init__(self, sides: Mapping[str, pl.Expr]) -> None:
        self.sides = dict(sides)
        self._tags = (*sides, MAIN)
        self._choice = pl.coalesce(
            *(pl.when(predicate).then(index) for index, predicate in enumerate(sides.values())),
            pl.lit(len(sides)),
        )

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Find the output of each row."""
        choices = values(frame, self._choice, self.name)
        counts = np.bincount(choices.to_numpy(), minlength=len(self._tags)).tolist()
        for index, (tag, count) in enumerate(zip(self._tags, counts, strict=True)):
            if count:
                ctx.emit(frame if count == frame.height else kept(frame, choices == index), tag)

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {tag: str(predicate) for tag, predicate in self.sides.items()}
