"""Map batches: a user function from frame to frame, for what expressions cannot say.

Shapes   the function gets a frame with all columns, and gives a DataFrame, or a LazyFrame, which is
         collected. It may give fewer or more rows, or others in another order, when it keeps
         `event_time` and `row_watermark`; otherwise they are put back.
Needs    a function whose result for a row depends on that row only; how rows are batched must not
         matter.
Errors   FunctionError when it raises, breaks its promise of columns, or changes event times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import polars as pl

from engine.elements import EVENT_TIME, RESERVED_COLUMNS
from engine.errors import FunctionError, UserError
from engine.operators.contract import Context, Operator
from engine.operators.expressions import raised, short_row

FrameFunction = Callable[[pl.DataFrame], pl.DataFrame | pl.LazyFrame]


class MapBatches(Operator):
    """Applies a function to every batch."""

    name: ClassVar[str] = "map_batches"

    def __init__(
        self, function: FrameFunction, label: str, schema: Mapping[str, pl.DataType]
    ) -> None:
        self.function = function
        self.label = label
        self.schema = dict(schema)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Call the function, and check what it gives."""
        ctx.emit(self._checked(frame, self._called(frame)))

    def _called(self, frame: pl.DataFrame) -> pl.DataFrame:
        try:
            return called(self.function, frame)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            msg = (
                f"map_batches {self.label!r} {raised(error)}: "
                f"first row of the batch {short_row(frame)}; fix the function"
            )
            raise FunctionError(msg) from error

    def _checked(self, frame: pl.DataFrame, outcome: pl.DataFrame) -> pl.DataFrame:
        lost = [name for name in frame.columns if name in _lost(outcome)]
        if lost and outcome.height != frame.height:
            msg = (
                f"map_batches {self.label!r} lost {', '.join(lost)} and changed the number of "
                f"rows: {frame.height} in, {outcome.height} out; keep these columns"
            )
            raise FunctionError(msg)
        outcome = outcome.with_columns(frame.get_column(name) for name in lost)
        given = {name: outcome.schema.get(name) for name in self.schema}
        if given != self.schema:
            msg = (
                f"map_batches {self.label!r} returned other columns than it promised: "
                f"got {dict(outcome.schema)}, promised {self.schema}; "
                "correct the function, or pass schema=…"
            )
            raise FunctionError(msg)
        self._check_times(frame, outcome)
        return outcome.select(*self.schema, *(name for name in _kept(outcome, self.schema)))

    def _check_times(self, frame: pl.DataFrame, outcome: pl.DataFrame) -> None:
        """Whether every row has the event time of a row that came in."""
        if EVENT_TIME not in frame.columns:
            return
        before, after = frame.get_column(EVENT_TIME), outcome.get_column(EVENT_TIME)
        if after.equals(before) or after.is_in(before.implode()).all():
            return
        msg = (
            f"map_batches {self.label!r} changed event_time: first row of the batch "
            f"{short_row(frame)}; leave it as it is"
        )
        raise FunctionError(msg)

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"function": self.label}


def called(function: FrameFunction, frame: pl.DataFrame) -> pl.DataFrame:
    """What the function gives for a frame, as a frame. Raises TypeError for anything else."""
    outcome = function(frame)
    if isinstance(outcome, pl.LazyFrame):
        outcome = outcome.collect()
    if not isinstance(outcome, pl.DataFrame):
        msg = f"gave a {type(outcome).__name__} instead of a frame"
        raise TypeError(msg)
    return outcome


def _lost(outcome: pl.DataFrame) -> list[str]:
    return [name for name in RESERVED_COLUMNS if name not in outcome.columns]


def _kept(outcome: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> list[str]:
    return [name for name in RESERVED_COLUMNS if name in outcome.columns and name not in schema]
