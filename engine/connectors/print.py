"""Print sink: rows on standard output, for a first look.

    2> {"sensor":"door","value":1.0}        subtask 2 printed this; times are in UTC

Guarantee  at least once: rows are printed as they come, and again after a restart.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import polars as pl

from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter
from engine.elements import RESERVED_COLUMNS


class PrintSink(Sink):
    """Prints each row as a line of JSON after the number of its subtask and an optional label."""

    def __init__(self, label: str = "") -> None:
        self.label = label

    def open(self, context: SinkContext) -> PrintWriter:
        """Print to the standard output of the worker."""
        return PrintWriter(
            f"{self.label}:{context.subtask}" if self.label else str(context.subtask)
        )

    def shadow(self, name: str) -> PrintSink:
        """The same rows under the label `<label>@<name>`."""
        return PrintSink(f"{self.label}@{name}")

    def describe(self) -> Mapping[str, str]:
        """Standard output."""
        return {"kind": "print", "target": "standard output", "label": self.label}


class PrintWriter(SinkWriter):
    """Prints the rows of one subtask."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def write(self, frame: pl.DataFrame) -> None:
        """Print rows at once."""
        text = frame.drop(RESERVED_COLUMNS, strict=False).write_ndjson()
        sys.stdout.write("".join(f"{self._prefix}> {line}\n" for line in text.splitlines()))

    def prepare(self, checkpoint_id: int) -> Json | None:
        """Nothing is held back but what the stream buffers."""
        sys.stdout.flush()
        return None
