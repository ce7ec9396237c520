"""Playback source: a recorded table, played as the live stream that it once was.

    table --select, sort by `order`, divide by `split_by`--> one log per split
    row i is appended at   anchor + (order[i] - order of the table's first row) / speed

Order      rows of a split come in the order of `order`; equal ones as they stand in the file.
Position   see `paced_log`: the row of the split, and the anchor.
Guarantee  replayable from any position, as long as the file does not change: exactly once with a
           sink that is.
Errors     ConfigError when the file or its columns cannot be used, SourceError when it is read.
Cost       each split is read into memory when it is opened; batches are slices, without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from engine import clock
from engine.connectors.contract import Json, Source, SplitReader
from engine.connectors.paced_log import (
    PacedLog,
    PacedReader,
    anchor_of,
    micros_of,
    rows_missing,
)
from engine.elements import Micros
from engine.errors import ConfigError, SourceError

WHOLE = "all"
"""The id of the only split of a table that is not divided."""


class PlaybackSource(Source):
    """Plays a Parquet file, `speed` times as fast as it happened (None: all at once).

    `columns` selects and computes what the stream has; `order` is one of them, the moment when a
    row became known (Datetime, naive counts as UTC); `split_by` names the columns whose values make
    the splits. `anchor` is when the first row is appended, by default now. Unless `bounded`, the
    stream stays open after the last row.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        order: str,
        split_by: str | Sequence[str] = (),
        columns: Sequence[str | pl.Expr] | None = None,
        speed: float | None = 1.0,
        anchor: datetime | None = None,
        bounded: bool = False,
    ) -> None:
        self.path = Path(path).absolute()
        self.order = order
        self.split_by = (split_by,) if isinstance(split_by, str) else tuple(split_by)
        self.columns = None if columns is None else tuple(columns)
        self.speed = _checked_speed(speed)
        self.anchor = clock.now_micros() if anchor is None else micros_of(anchor)
        self.bounded = bounded
        self._check_columns()

    @cached_property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The selected columns, as they stand in the file."""
        return dict(self._table().collect_schema())

    def splits(self) -> Sequence[str]:
        """One split for each value of the columns `split_by`, sorted."""
        if not self.split_by:
            return [WHOLE]
        ids = self._collect(self._table().select(self._split_id().unique().sort()))
        return ids.to_series().to_list()

    def open(self, split: str, position: Json | None) -> SplitReader:
        """Read the rows of a split into memory and continue at a position."""
        table = self._table()
        rows = table.filter(self._split_id() == split) if self.split_by else table
        frame = self._collect(rows.sort(self.order, maintain_order=True))
        if frame.is_empty() and self.split_by:
            msg = f"split '{split}' is not in the file: {self.path}; restore the file"
            raise SourceError(msg)
        first = self._collect(table.select(_micros(self.order).min())).item()
        log = _Recording(frame, _order(frame, self.order), first or 0, self.speed)
        return PacedReader(split, log, self.anchor, self.bounded, position)

    def position_at(self, split: str, stored: Json | None, time: Micros | None) -> Json:
        """The first row whose `order` is that time, or later."""
        began = anchor_of(stored, self.anchor)
        if time is None:
            return {"row": 0, "anchor_us": began}
        table = self._table()
        rows = table.filter(self._split_id() == split) if self.split_by else table
        before = self._collect(rows.select((_micros(self.order) < time).sum())).item()
        return {"row": before, "anchor_us": began}

    def missing(self, split: str, position: Json | None) -> str:
        """A split that the file has no more, or that has become shorter."""
        table = self._table()
        rows = table.filter(self._split_id() == split) if self.split_by else table
        length = self._collect(rows.select(pl.len())).item()
        if not length and self.split_by:
            return f"all of it: it is not in {self.path}"
        return rows_missing(split, length, position)

    def _table(self) -> pl.LazyFrame:
        table = pl.scan_parquet(self.path)
        return table if self.columns is None else table.select(self.columns)

    def _split_id(self) -> pl.Expr:
        values = [pl.col(name).cast(pl.String).fill_null("null") for name in self.split_by]
        return pl.concat_str(values, separator="/")

    def _collect(self, table: pl.LazyFrame) -> pl.DataFrame:
        try:
            return table.collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            msg = f"recording cannot be read: {self.path}: {_first_line(error)}; restore the file"
            raise SourceError(msg) from error

    def _check_columns(self) -> None:
        if not self.path.is_file():
            msg = f"recording does not exist: {self.path}; pass the path of a Parquet file"
            raise ConfigError(msg)
        try:
            schema = self.schema
        except pl.exceptions.PolarsError as error:
            msg = f"recording cannot be played: {self.path}: {_first_line(error)}; check columns"
            raise ConfigError(msg) from error
        for name in (self.order, *self.split_by):
            if name not in schema:
                msg = (
                    f"recording has no column '{name}': {self.path}; it has {', '.join(schema)}: "
                    "pass one of them, or compute it with `columns`"
                )
                raise ConfigError(msg)
        if not isinstance(schema[self.order], (pl.Datetime, pl.Date)):
            msg = (
                f"column '{self.order}' cannot order a recording: got {schema[self.order]}; "
                "pass a Datetime or Date column"
            )
            raise ConfigError(msg)


class _Recording(PacedLog):
    """One split of the table: its rows, and their order in µs."""

    def __init__(
        self, frame: pl.DataFrame, order: npt.NDArray[np.int64], first: int, speed: float | None
    ) -> None:
        self.length = frame.height
        self._frame = frame
        self._order = order
        self._first = first
        self._speed = speed

    def appended(self, elapsed: int) -> int:
        if self._speed is None:
            return self._frame.height
        reached = self._first + int(elapsed * self._speed)
        return int(np.searchsorted(self._order, reached, side="right"))

    def due(self, row: int) -> int:
        if self._speed is None:
            return 0
        return -int(-(int(self._order[row]) - self._first) // self._speed)

    def rows(self, lo: int, hi: int) -> pl.DataFrame:
        return self._frame.slice(lo, hi - lo)


def _micros(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.Datetime("us")).dt.epoch("us")


def _order(frame: pl.DataFrame, column: str) -> npt.NDArray[np.int64]:
    order = frame.select(_micros(column)).to_series()
    if order.null_count():
        msg = (
            f"column '{column}' cannot order a recording: got {order.null_count()} nulls; "
            "fill them, or drop those rows from the file"
        )
        raise SourceError(msg)
    return order.to_numpy()


def _checked_speed(speed: float | None) -> float | None:
    if speed is not None and not 0 < speed < float("inf"):
        msg = f"speed must be positive: got {speed}; pass 86400 for a day a second, or None"
        raise ConfigError(msg)
    return speed


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
