"""Frame source: a table that the job file holds, for first steps, small tables and tests.

Guarantee  exactly once: the position is the number of rows read.
Shapes     one split, or one per name when several frames of one schema are given; rows in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.connectors.contract import Json, Polled, Source, SplitReader
from engine.elements import Micros
from engine.errors import GraphError


class FrameSource(Source):
    """Reads frames from their first row to their last, then ends.

    >>> source = FrameSource(pl.DataFrame({"word": ["to", "be"]}))
    >>> source.splits(), dict(source.schema)
    (['frame'], {'word': String})
    """

    bounded = True

    def __init__(self, frames: pl.DataFrame | Mapping[str, pl.DataFrame]) -> None:
        """`frames`: one frame, or frames by the name of their split."""
        self._frames = {"frame": frames} if isinstance(frames, pl.DataFrame) else dict(frames)
        schemas = [dict(frame.schema) for frame in self._frames.values()]
        if not schemas or any(schema != schemas[0] for schema in schemas):
            msg = f"frame source needs frames of one schema: got {schemas}; select them alike"
            raise GraphError(msg)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns of the frames."""
        return next(iter(self._frames.values())).schema

    def splits(self) -> Sequence[str]:
        """The names of the frames."""
        return list(self._frames)

    def open(self, split: str, position: Json | None) -> FrameReader:
        """Read on behind the rows that were read."""
        return FrameReader(self._frames[split], position if isinstance(position, int) else 0)

    def missing(self, split: str, position: Json | None) -> str:
        """The rows of a split or frame that the job file holds no more."""
        frame, at = self._frames.get(split), position if isinstance(position, int) else 0
        if frame is None:
            return f"rows from {at:,} on: the job has no frame '{split}'"
        if at > frame.height:
            return f"rows from {frame.height:,} to {at:,} were read: the frame has them no more"
        return ""


class FrameReader(SplitReader):
    """Reads one frame."""

    def __init__(self, frame: pl.DataFrame, at: int) -> None:
        self._frame = frame
        self._at = at

    def poll(self, max_rows: int, now: Micros) -> Polled:
        """Take the next rows."""
        rows = self._frame.slice(self._at, max_rows)
        self._at += rows.height
        left = self._frame.height - self._at
        return Polled(rows if rows.height else None, finished=left == 0, pending_rows=left)

    @property
    def position(self) -> Json:
        """How many rows were read."""
        return self._at
