"""JSON lines: one JSON object per line, read from the files of a pattern, or written to a folder.

    {"sensor": "door", "time": "2026-01-01T00:00:00Z", "value": 1.0}

Shapes     the columns of `schema`, in its order. Fields that it does not name are ignored, missing
           ones are null. Times are text in ISO 8601 or, as an integer column, a number; a nested
           object is a Struct, an array a List.
Position   see `line_files`, as for order, guarantee and what a file may look like; what is written,
           and that it is there exactly once, is told in `bucketed_files`.
Errors     DataError for a line that is no object or does not fit: with `bad_lines="skip"` it is
           left out instead, and counted as `numRecordsInErrors`.
Cost       about 0.3 µs a row of three fields on one core, most of it Polars' parser.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import polars as pl

from engine.connectors.bucketed_files import BucketedFilesSink
from engine.connectors.line_files import BadLines, LineFilesSource
from engine.errors import ConfigError
from engine.state.schema import TypeLike

_UNREAD = (
    *(pl.Int8, pl.Int16, pl.UInt8, pl.UInt16),
    *(pl.Time, pl.Duration, pl.Decimal, pl.Binary),
)
"""Polars' parser panics, or refuses each value, when a column is of one of these."""


class JsonLinesSource(LineFilesSource):
    r"""Reads JSON lines from `path`, which may have wildcards; a split for each file.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jsonl").write_text('{"n": 1, "more": true}\n\n{"n": 2}\n')
    >>> source = JsonLinesSource(folder / "*.jsonl", schema={"n": int})
    >>> reader = source.open("a.jsonl", None)
    >>> reader.poll(1, 0).frame["n"].to_list(), reader.position
    ([1], {'byte': 23, 'line': 1})
    >>> reader.close()
    """

    kind = "a JSON object of the declared columns"

    def __init__(
        self, path: str | Path, *, schema: Mapping[str, TypeLike], bad_lines: BadLines = "fail"
    ) -> None:
        """Declare the columns. Raises ConfigError, also for a type that JSON has no values of."""
        super().__init__(path, schema=schema, bad_lines=bad_lines)
        for name, dtype in self.columns.items():
            if isinstance(dtype, _UNREAD):
                msg = (
                    f"column {name!r} of {str(path)!r} cannot be read from JSON: its type is "
                    f"{dtype}; read an Int64, a Float64 or a String, and cast it"
                )
                raise ConfigError(msg)

    def decode(self, lines: bytes) -> pl.DataFrame:
        """Parse whole lines."""
        return pl.read_ndjson(io.BytesIO(lines), schema=self.columns)


class JsonLinesSink(BucketedFilesSink):
    """Writes rows as JSON lines below `path`, in a folder for each value of `bucket`.

    Times are text in ISO 8601, nulls are written; NaN and infinity, which JSON lacks, are null.

    >>> JsonLinesSink("/data/visits", bucket="page").describe()
    {'kind': 'JSON lines', 'target': '/data/visits'}
    """

    kind: ClassVar[str] = "JSON lines"
    suffix: ClassVar[str] = ".jsonl"

    def encode(self, frame: pl.DataFrame, path: Path) -> None:
        """Write one file."""
        frame.write_ndjson(path)
