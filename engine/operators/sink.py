"""The sink operator: rows to a connector's writer, and its commits in two phases.

    rows           those of the span of event time that the job writes go to the writer
    barrier N      prepare(N) --> committable, kept as pending
    snapshot N     holds every committable that is still pending, also those of aborted checkpoints
    N complete     commit every committable prepared up to N, in order

Guarantee  a committable is in each snapshot from its own on until it is committed, so a crash
           at any moment either repeats an idempotent commit or writes the rows again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import polars as pl

from engine.connectors.contract import Json, Sink, SinkContext
from engine.operators.span import Span


class SinkOperator:
    """Writes everything that it is fed to one sink. Pickled into the job graph."""

    name: ClassVar[str] = "sink"
    states: ClassVar[tuple[()]] = ()

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.span = Span()
        """What of the rows is written."""

    def describe(self) -> Mapping[str, str]:
        """Where the rows go, for people."""
        return {**self.sink.describe(), **self.span.describe()}


class SinkRun:
    """The sink of one subtask while it runs. Owned by one thread."""

    def __init__(
        self, operator: SinkOperator, context: SinkContext, restored: Sequence[Json]
    ) -> None:
        """Open the writer; subtask 0 settles what a restored snapshot and earlier attempts left."""
        self._writer = operator.sink.open(context)
        self._span = operator.span
        self._pending: list[tuple[int, Json]] = []
        if context.subtask == 0:
            self._writer.recover(restored)

    @property
    def committables(self) -> tuple[Json, ...]:
        """What is staged and not yet committed."""
        return tuple(committable for _, committable in self._pending)

    def write(self, frame: pl.DataFrame) -> None:
        """Take rows."""
        rows = self._span.part(frame)
        if rows.height:
            self._writer.write(rows)

    def prepare(self, checkpoint_id: int) -> None:
        """Stage all rows so far."""
        committable = self._writer.prepare(checkpoint_id)
        if committable is not None:
            self._pending.append((checkpoint_id, committable))

    def commit(self, checkpoint_id: int) -> None:
        """The checkpoint is complete: make visible what was staged up to it."""
        while self._pending and self._pending[0][0] <= checkpoint_id:
            self._writer.commit(self._pending[0][1])
            self._pending.pop(0)

    def close(self) -> None:
        """Release the writer's resources."""
        self._writer.close()
