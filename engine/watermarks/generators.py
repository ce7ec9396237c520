"""Watermarks that an author makes: row by row, from the columns of one split.

    rows of a split, in order ──on_rows──▶ a watermark behind each row, or null: nothing new

A row is judged by the watermarks of the rows before it: its own one is a promise about later rows.

Order    how the rows of a split are cut into batches depends on speed, so it must change nothing:
         two batches one after the other give what both give as one. What a generator has to
         remember from row to row is its `state`, which is in every snapshot.
         `check_watermark_generator` of `engine.testing` tries it.
Units    watermarks are µs since 1970 UTC (Int64), or Datetime. One that goes back changes nothing.
Source   Flink's WatermarkGenerator; punctuated watermarks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import polars as pl

from engine.elements import MIN_TIME
from engine.errors import FunctionError
from engine.watermarks.times import short

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

Watermarks = Callable[[pl.DataFrame], pl.Series]
"""A generator that needs no state: from the rows to a watermark for each."""


class WatermarkGenerator(ABC):
    """Says how far event time of one split has come. It is copied for each split.

    >>> class EndOfHour(WatermarkGenerator):
    ...     "Rows of kind 'end' promise that their hour is complete."
    ...     def on_rows(self, rows):
    ...         ends = pl.when(pl.col("kind") == "end").then(pl.col("event_time"))
    ...         return rows.select(ends).to_series()
    >>> rows = pl.DataFrame({"kind": ["row", "end"], "event_time": [5, 7]})
    >>> EndOfHour().on_rows(rows).to_list()
    [None, 7]
    """

    @abstractmethod
    def on_rows(self, rows: pl.DataFrame) -> pl.Series:
        """Return one watermark per row; `event_time` (Int64, µs) is among the columns."""

    @property
    def state(self) -> Json:
        """What it remembers of the rows so far, as JSON; None when that is nothing."""
        return None

    def restore(self, state: Json) -> None:
        """Go on from what a snapshot holds. Called before the first row, unless it is None."""
        return


class FunctionGenerator(WatermarkGenerator):
    """A function of the rows, which remembers nothing."""

    def __init__(self, function: Watermarks) -> None:
        self.function = function

    def __str__(self) -> str:
        return getattr(self.function, "__name__", "function")

    def on_rows(self, rows: pl.DataFrame) -> pl.Series:
        """Call the function."""
        return self.function(rows)


def watermarks_of(generator: WatermarkGenerator, rows: pl.DataFrame) -> pl.Series:
    """Ask a generator, and hold it to its contract: Int64, µs, no nulls. Raises FunctionError."""
    who = f"watermark generator {named(generator)}"
    try:
        made = generator.on_rows(rows)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        msg = f"{who} raised {what}: first row of the batch {short(rows, 0)}; fix it"
        raise FunctionError(msg) from error
    if not isinstance(made, pl.Series) or len(made) != rows.height:
        given = f"{len(made)} values" if isinstance(made, pl.Series) else type(made).__name__
        msg = (
            f"{who} does not fit its rows: got {given} for {rows.height} rows; return a Series "
            "with one watermark, or null, for each row"
        )
        raise FunctionError(msg)
    if made.dtype == pl.Null:
        return pl.repeat(MIN_TIME, rows.height, dtype=pl.Int64, eager=True)
    if not (made.dtype == pl.Datetime or made.dtype.is_integer()):
        msg = f"{who} does not give times: got {made.dtype}; return Datetime, or µs as Int64"
        raise FunctionError(msg)
    micros = made if made.dtype.is_integer() else made.dt.cast_time_unit("us").to_physical()
    return micros.cast(pl.Int64).fill_null(MIN_TIME)


def named(generator: WatermarkGenerator) -> str:
    """What people call it."""
    name = str(generator) if isinstance(generator, FunctionGenerator) else type(generator).__name__
    return repr(name)
