"""Counters of the operators of one subtask. Written by its thread, read by any."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from engine.elements import MIN_TIME, Micros


@dataclass(slots=True)
class OperatorMetrics:
    """What one operator has done since this attempt began."""

    uid: str
    name: str
    rows_in: int = 0
    rows_out: int = 0
    batches_in: int = 0
    batches_out: int = 0
    watermark_in: Micros = MIN_TIME
    watermark_out: Micros = MIN_TIME
    counters: Counter[str] = field(default_factory=Counter)
    """What the operator counts itself, e.g. `numLateRecordsDropped`."""


@dataclass(slots=True)
class TaskMetrics:
    """All operators of one subtask, in the order of the chain."""

    operators: list[OperatorMetrics] = field(default_factory=list)
    pending_rows: int | None = None
    """Rows that the source could read at once; None when unknown, or when there is no source."""
    newest: Micros | None = None
    """The largest event time that the source has read."""
    ahead: Micros | None = None
    """How far the source is ahead of the slowest of its watermark group."""
