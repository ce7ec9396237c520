"""Collect sink: rows appended to JSON-lines files, for tests and first steps.

    <path>/<attempt>-<subtask>.jsonl       one file per writer, which only that writer appends to

Guarantee  at least once: all rows are on disk before their checkpoint completes, and rows after it
           are written again when the job restarts.
Errors     SinkError when the folder cannot be written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter
from engine.elements import RESERVED_COLUMNS
from engine.errors import SinkError


class CollectSink(Sink):
    """Appends each row as a line of JSON to a file below `path`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()

    def open(self, context: SinkContext) -> CollectWriter:
        """Open a file that no other writer has."""
        attempt = re.sub(r"[^A-Za-z0-9]", "_", context.attempt_id)
        return CollectWriter(self.path / f"{attempt}-{context.subtask}.jsonl")

    def shadow(self, name: str) -> CollectSink:
        """The same files in the folder `<path>@<name>`."""
        return CollectSink(self.path.with_name(f"{self.path.name}@{name}"))

    def describe(self) -> Mapping[str, str]:
        """The folder."""
        return {"kind": "collect", "target": str(self.path)}


class CollectWriter(SinkWriter):
    """Appends the rows of one subtask."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            msg = f"file cannot be opened: {path}: {error.strerror}; check folder and rights"
            raise SinkError(msg) from error

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows; a reader may see them at once."""
        with self._reported():
            self._file.write(frame.drop(RESERVED_COLUMNS, strict=False).write_ndjson())

    def prepare(self, checkpoint_id: int) -> Json | None:
        """Force all rows to disk."""
        with self._reported():
            self._file.flush()
            os.fsync(self._file.fileno())
        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            msg = f"rows cannot be written: {self._file.name}: {error.strerror}; check its disk"
            raise SinkError(msg) from error
