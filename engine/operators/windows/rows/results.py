"""What fires, as columns: aggregates, functions of whole windows, folds.

    firings, in order ──▶ (keys…, window_start, window_end, columns…, event_time[, row_watermark])

Shapes   the bounds of windows are Datetime UTC; a global window has none. `event_time` is the last
         microsecond of the window; of a global one, the turn at which it fired, or the latest of
         its rows when the input has ended.
Late     a result that comes after the end of its window carries its turn as `row_watermark`:
         windows behind it judge it by that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from engine.aggregates import Partials
from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, ROW_WATERMARK
from engine.errors import FunctionError, UserError
from engine.operators.expressions import raised, short_row
from engine.operators.records.rows import columns_of, rows_of
from engine.operators.windows.partial_aggregate import aggregated
from engine.operators.windows.rows.contents import RowContents
from engine.operators.windows.rows.folds import Fold, Folding, times_of
from engine.operators.windows.rows.setup import Firing
from engine.operators.windows.window_aggregate import WINDOW_END, WINDOW_START
from engine.state.values import UNFIT
from engine.windows import Global

Schema = Mapping[str, pl.DataType]
_UTC = pl.Datetime("us", "UTC")
_NUMBER = "firing.number"


@dataclass(frozen=True, slots=True)
class WindowContext:
    """Which window a function looks at."""

    key: tuple[Any, ...]
    """The values of the key columns."""
    start: int | None
    """The window covers [start, end), µs UTC; None for a global one."""
    end: int | None
    watermark: int
    """How far event time was when the window fired, µs."""


WindowFunction = Callable[[pl.DataFrame, WindowContext], pl.DataFrame]


class Results(ABC):
    """Makes columns of what fired."""

    text: str
    """What it makes, for people."""
    types: Schema
    """Columns of its own."""

    @abstractmethod
    def of(self, firings: Sequence[Firing]) -> tuple[pl.DataFrame, Sequence[int] | None]:
        """Columns of the results, in order; and how many rows each firing has, if not one."""

    @abstractmethod
    def latest(self, firing: Firing) -> int:
        """The latest event time in a window."""


class Aggregates(Results):
    """Declared aggregates over the rows of each window."""

    def __init__(self, contents: RowContents, partials: Partials) -> None:
        self.contents = contents
        self.partials = partials
        self.types = dict(partials.result_types())
        self.text = str(partials)

    def of(self, firings: Sequence[Firing]) -> tuple[pl.DataFrame, Sequence[int] | None]:
        """One group per firing."""
        rows, heights = _rows(firings, self.contents)
        number = pl.Series(_NUMBER, np.repeat(np.arange(len(firings)), heights))
        partial = aggregated(self.partials, rows, number, (), ())
        return pl.DataFrame(self.partials.results(partial.sort(_NUMBER))), None

    def latest(self, firing: Firing) -> int:
        """The latest event time of its rows."""
        return _latest(firing.content)


class Applied(Results):
    """A function from the frame of a window to a frame of results."""

    def __init__(
        self, contents: RowContents, function: WindowFunction, label: str, types: Schema
    ) -> None:
        self.contents = contents
        self.function = function
        self.text = label
        self.types = dict(types)

    def of(self, firings: Sequence[Firing]) -> tuple[pl.DataFrame, Sequence[int] | None]:
        """One call per firing."""
        rows, heights = _rows(firings, self.contents)
        ends = np.cumsum(heights)
        made = [
            self._called(firing, rows.slice(end - height, height))
            for firing, end, height in zip(firings, ends.tolist(), heights, strict=True)
        ]
        return pl.concat(made), [frame.height for frame in made]

    def _called(self, firing: Firing, whole: pl.DataFrame) -> pl.DataFrame:
        try:
            made = self.function(whole, _context(firing))
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            msg = (
                f"apply {self.text!r} {raised(error)}: {whole.height} rows of key "
                f"{firing.pane[1:-2]}, the first {short_row(whole)}; fix the function"
            )
            raise FunctionError(msg) from error
        given = dict(made.schema) if isinstance(made, pl.DataFrame) else made
        if given != self.types:
            msg = (
                f"apply {self.text!r} returned other columns than it promised: got {given!r}, "
                f"promised {self.types}; correct the function, or pass schema=…"
            )
            raise FunctionError(msg)
        return made.select(list(self.types))

    def latest(self, firing: Firing) -> int:
        """The latest event time of its rows."""
        return _latest(firing.content)


class Folded(Results):
    """The result of an accumulator; or of rows that are folded now, when there is an evictor."""

    def __init__(self, fold: Fold, contents: RowContents | None = None) -> None:
        self.fold = fold
        self.contents = contents
        self.types = dict(fold.result_types)
        self.text = fold.step

    def of(self, firings: Sequence[Firing]) -> tuple[pl.DataFrame, Sequence[int] | None]:
        """One row per firing."""
        rows = [self.fold.result(self._folding(firing)) for firing in firings]
        columns = [
            self._column(name, dtype, [row.get(name) for row in rows])
            for name, dtype in self.types.items()
        ]
        return pl.DataFrame(columns), None

    def _folding(self, firing: Firing) -> Folding:
        if self.contents is None:
            held: Folding = firing.content
            return held
        made: Folding | None = None
        whole = self.contents.whole(firing.content, firing.pane)
        rows = rows_of(columns_of(self.fold.seen(whole)))
        for row, time in zip(rows, times_of(whole), strict=True):  # as `FoldContents` does
            made = self.fold.added(made, row, time)
        assert made is not None
        return made

    def _column(self, name: str, dtype: pl.DataType, values: Sequence[Any]) -> pl.Series:
        try:
            return pl.Series(name, values, dtype=dtype, strict=True)
        except UNFIT as error:
            msg = (
                f"{self.fold.step} gave values of column {name!r} that are not {dtype}: "
                f"{str(error).partition(chr(10))[0]}; convert them"
            )
            raise FunctionError(msg) from error

    def latest(self, firing: Firing) -> int:
        """The latest event time of its rows."""
        return _latest(firing.content) if self.contents else int(firing.content[0])


def result_columns(
    window: object, keys: Schema, types: Schema, *, timed: bool
) -> dict[str, pl.DataType]:
    """Columns and types of what windows give."""
    bounds = {} if isinstance(window, Global) else {WINDOW_START: _UTC, WINDOW_END: _UTC}
    times = {EVENT_TIME: pl.Int64()} if timed else {}
    return {**keys, **bounds, **types, **times}


def frame_of(
    results: Results, firings: Sequence[Firing], keys: Schema, *, timed: bool
) -> pl.DataFrame:
    """All results, in order of the firings."""
    made, heights = results.of(firings)
    columns = list(_keys(firings, keys))
    if firings[0].pane[-1] != MAX_TIME:
        starts, ends = ([firing.pane[at] for firing in firings] for at in (-2, -1))
        columns.append(pl.Series(WINDOW_START, starts, pl.Int64).cast(_UTC))
        columns.append(pl.Series(WINDOW_END, ends, pl.Int64).cast(_UTC))
    stamps: list[pl.Series] = []
    if timed:
        times, marks = zip(*(_stamp(firing, results) for firing in firings), strict=True)
        stamps.append(pl.Series(EVENT_TIME, times, pl.Int64))
        if any(mark is not None for mark in marks):
            stamps.append(pl.Series(ROW_WATERMARK, marks, pl.Int64))
    of_each = pl.DataFrame([*columns, *stamps])
    if heights is not None:
        of_each = of_each[np.repeat(np.arange(len(firings)), heights)]
    behind = [of_each.get_column(stamp.name) for stamp in stamps]
    return pl.DataFrame([*(of_each.get_column(each.name) for each in columns), *made, *behind])


def _stamp(firing: Firing, results: Results) -> tuple[int, int | None]:
    """The event time of a result, and the watermark that it is judged by if it is behind."""
    at, end = firing.at, firing.pane[-1]
    if end == MAX_TIME:
        if MIN_TIME < at < MAX_TIME:
            return at, None
        return results.latest(firing), at if at == MAX_TIME else None
    # The timer at the end is in time; a row that has its turn then is not.
    return end - 1, at if at > end or (at == end and firing.by_row) else None


def _context(firing: Firing) -> WindowContext:
    *key, start, end = firing.pane[1:]
    if end == MAX_TIME:
        return WindowContext(tuple(key), None, None, firing.at)
    return WindowContext(tuple(key), start, end, firing.at)


def _rows(firings: Sequence[Firing], contents: RowContents) -> tuple[pl.DataFrame, Sequence[int]]:
    """The rows of all firings with all columns of the stream, and how many each has."""
    heights = [sum(frame.height for frame in firing.content) for firing in firings]
    # In one piece, or a sum of floats shows the cuts; `concat` leaves a single frame as it is.
    rows = pl.concat(frame for firing in firings for frame in firing.content).rechunk()
    keys = _keys(firings, contents.keys)[np.repeat(np.arange(len(firings)), heights)]
    columns = {column.name: column for column in (*rows, *keys)}
    return pl.DataFrame([columns[name] for name in contents.schema]), heights


def _keys(firings: Sequence[Firing], keys: Schema) -> pl.DataFrame:
    return pl.DataFrame(
        [
            pl.Series(name, [firing.pane[1 + at] for firing in firings], dtype=dtype)
            for at, (name, dtype) in enumerate(keys.items())
        ]
    )


def _latest(frames: Sequence[pl.DataFrame]) -> int:
    return max(int(frame.get_column(EVENT_TIME).max()) for frame in frames)  # type: ignore[arg-type]
