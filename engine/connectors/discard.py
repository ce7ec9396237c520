"""Discarding sink: in the place of another, of which nothing is to be written.

Guarantee  no target is opened, and what a snapshot had staged for it stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter


class DiscardSink(Sink):
    """Takes the rows of another sink, and writes none."""

    def __init__(self, instead_of: Sink) -> None:
        self.instead_of = instead_of

    def open(self, context: SinkContext) -> SinkWriter:
        """A writer that writes nothing."""
        return _Discarding()

    def shadow(self, name: str) -> Sink:
        """Beside nothing is nothing."""
        return self

    def check(self, schema: Mapping[str, pl.DataType]) -> None:
        """Refuse what the other one would refuse. Raises GraphError."""
        self.instead_of.check(schema)

    def describe(self) -> Mapping[str, str]:
        """What is not written."""
        return {"kind": "discard", "instead of": self.instead_of.describe().get("target", "")}


class _Discarding(SinkWriter):
    def write(self, frame: pl.DataFrame) -> None:
        return

    def prepare(self, checkpoint_id: int) -> Json | None:
        return None

    def recover(self, committables: Sequence[Json]) -> None:
        return
