"""A source with the steps behind it: rows get their event time from columns that steps make.

    split ──poll──▶ frame ──step──▶ … ──step──▶ frame, still in the order of the split

Event time is stamped split by split, so it has to happen before rows of several splits meet. Steps
that look at one row at a time may come before that: they run inside the source.

Late     the same as in a source that has these columns itself.
Errors   what a step raises, as anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import polars as pl

from engine.connectors.contract import Json, Polled, Source, SplitReader
from engine.elements import Micros
from engine.errors import InternalError
from engine.operators.columns.explode import Explode
from engine.operators.columns.filter import Filter
from engine.operators.columns.map_batches import MapBatches
from engine.operators.columns.project import Project
from engine.operators.contract import MAIN, Context, Operator
from engine.operators.records.records import FilterRows, FlatMapRows, MapRows

ROW_STEPS = (Project, Filter, Explode, MapRows, FlatMapRows, FilterRows, MapBatches)
"""They keep the order of rows, have no state, and the result for a row depends on it alone."""


class SteppedSource(Source):
    """Reads another source, and takes every frame through the steps."""

    def __init__(
        self, source: Source, steps: Sequence[Operator], schema: Mapping[str, pl.DataType]
    ) -> None:
        """`schema`: of what the last step gives."""
        self.source = source
        self.steps = tuple(steps)
        self.bounded = source.bounded
        self._schema = dict(schema)

    def __str__(self) -> str:
        return " → ".join(step.name for step in self.steps)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns behind the last step."""
        return self._schema

    def splits(self) -> Sequence[str]:
        """Those of the source."""
        return self.source.splits()

    def open(self, split: str, position: Json | None) -> SplitReader:
        """Open a split of the source."""
        return _SteppedReader(self.source.open(split, position), self.steps)

    def position_at(self, split: str, stored: Json | None, time: Micros | None) -> Json:
        """Where the source finds it."""
        return self.source.position_at(split, stored, time)

    def missing(self, split: str, position: Json | None) -> str | None:
        """What the source says."""
        return self.source.missing(split, position)


class _SteppedReader(SplitReader):
    def __init__(self, reader: SplitReader, steps: Sequence[Operator]) -> None:
        self._reader = reader
        self._steps = steps

    def poll(self, max_rows: int, now: Micros) -> Polled:
        polled = self._reader.poll(max_rows, now)
        if polled.frame is None or polled.frame.is_empty():
            return polled
        frame: pl.DataFrame | None = polled.frame
        polled = replace(polled, rows_read=polled.frame.height)
        for step in self._steps:
            if frame is not None:
                frame = _taken(step, frame)
        if frame is None and polled.retry_at is None:
            return replace(polled, frame=None, retry_at=now)
        return replace(polled, frame=frame)

    @property
    def position(self) -> Json:
        return self._reader.position

    def close(self) -> None:
        self._reader.close()


def _taken(step: Operator, frame: pl.DataFrame) -> pl.DataFrame | None:
    """What a step makes of a frame; None when no row is left."""
    ctx = _StepContext()
    step.on_batch(frame, 0, ctx)
    return pl.concat(ctx.frames) if ctx.frames else None


class _StepContext(Context):
    """Keeps what a step emits; it has no need of anything else."""

    def __init__(self) -> None:
        self.frames: list[pl.DataFrame] = []

    def emit(self, frame: pl.DataFrame, tag: str = MAIN) -> None:
        if tag == MAIN and frame.height:
            self.frames.append(frame)

    def count(self, metric: str, amount: int) -> None:
        _refuse(metric)

    def state(self, descriptor: object) -> object:
        _refuse(descriptor)

    def wake(self, time: Micros) -> None:
        _refuse(time)

    def ask(self, request: object) -> None:
        _refuse(request)

    def release(self, element: object) -> None:
        _refuse(element)


def _refuse(what: object) -> NoReturn:
    msg = f"a step inside a source asks for {what!r}: it looks at one row at a time"
    raise InternalError(msg)
