"""Counters of the operators of one subtask. Written by its thread, read by any."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.elements import MIN_TIME, Batch, Element, Micros

REMEMBERED = 128
"""Latency markers of each source: two minutes, as many as in Flink."""


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
    fetch_lag: int | None = None
    """µs from the newest event time to the moment in which its batch was read."""
    emit_lag: int | None = None
    """The same, to the moment in which all that it caused was handed on."""
    latencies: dict[str, deque[int]] = field(default_factory=dict)
    """µs that the last markers of each source vertex took to get here."""
    ahead: Micros | None = None
    """How far the source is ahead of the slowest of its watermark group."""

    def on_latency(self, source: str, latency: int) -> None:
        """A marker has come."""
        known = self.latencies.get(source)
        if known is None:
            known = self.latencies[source] = deque(maxlen=REMEMBERED)
        known.append(latency)


@dataclass(frozen=True, slots=True)
class Queues:
    """What waits in the queues of one subtask: elements, and bytes of their rows."""

    input_elements: int = 0
    input_bytes: int = 0
    output_elements: int = 0
    output_bytes: int = 0

    @classmethod
    def of(cls, entering: Iterable[Element], leaving: Iterable[Element]) -> Queues:
        """Measure the elements that wait to be taken, and to be sent."""
        inputs, outputs = list(entering), list(leaving)
        return cls(len(inputs), _bytes(inputs), len(outputs), _bytes(outputs))


def _bytes(elements: list[Element]) -> int:
    frames = (element.frame for element in elements if isinstance(element, Batch))
    return sum(int(frame.estimated_size()) for frame in frames)
