"""Process: a user function of one row at a time, with side outputs and without state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from engine.elements import EVENT_TIME, MIN_TIME
from engine.functions.process import ProcessFunction
from engine.operators.contract import MAIN, Context, Operator
from engine.operators.records.keyed_process import DICTS, Classes
from engine.operators.records.rows import check_nulls, columns_of, rows_of
from engine.operators.records.turn import NO_KEY, Setup, Turn

Schema = Mapping[str, pl.DataType]


class ProcessRows(Operator):
    """Runs a `ProcessFunction`."""

    name: ClassVar[str] = "process_rows"

    def __init__(
        self,
        function: ProcessFunction,
        label: str,
        schema: Schema,
        *,
        sides: Mapping[str, Schema] | None = None,
        classes: Classes = DICTS,
    ) -> None:
        """`sides`: columns of each side output."""
        self.function = function
        self.label = label
        self.schema = dict(schema)
        self._setup = Setup(
            function=function,
            step=f"process {label!r}",
            schemas={MAIN: self.schema, **(sides or {})},
            takes=classes.takes or (None,),
            gives=classes.gives,
            states={},
            event_timers=None,
            processing_timers=None,
        )

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Call the function once per row."""
        (made,) = self._setup.takes
        check_nulls(frame, made, self._setup.step)
        columns = columns_of(frame)
        times = columns.get(EVENT_TIME) or [None] * frame.height
        turn = Turn(self._setup, [NO_KEY], ctx, frame)
        slots, ages = [0] * frame.height, [MIN_TIME] * frame.height
        with turn.explained():
            turn.take_all(self.function.process, rows_of(columns, made), slots, times, ages)
        turn.finish()

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"function": self.label}
