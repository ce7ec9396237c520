"""What the batches of one source subtask cost, second by second.

    ready ──queue delay──▶ poll ──processing time──▶ everything it caused is handed on
          └────────────────────── total delay ─────────────────────────────┘

Units    delays are µs; a batch belongs to the second (of the epoch) in which it was handed on.
Order    `begin` and `end` by the thread that owns the subtask, `take` by one other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from engine.elements import Micros

MICROS = 1_000_000


@dataclass(slots=True)
class BatchSums:
    """The batches of one second: sums, and the largest of each delay."""

    batches: int = 0
    rows: int = 0
    queue_us: int = 0
    """How long the first row of each batch had been ready to be read."""
    processing_us: int = 0
    """From the poll until the outbox was empty: with steps in the same chain, and with waits for
    credits, so that a slow step anywhere behind it shows."""
    queue_max_us: int = 0
    processing_max_us: int = 0
    total_max_us: int = 0

    def add(self, rows: int, queue: int, processing: int) -> None:
        """Count one more batch."""
        self.batches += 1
        self.rows += rows
        self.queue_us += queue
        self.processing_us += processing
        self.queue_max_us = max(self.queue_max_us, queue)
        self.processing_max_us = max(self.processing_max_us, processing)
        self.total_max_us = max(self.total_max_us, queue + processing)


class BatchMeter:
    """Measures the batches of one subtask."""

    def __init__(self) -> None:
        self._open: tuple[Micros, int, int] | None = None
        self._seconds: dict[int, BatchSums] = {}
        self._changing = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether a batch was read and is not handed on yet."""
        return self._open is not None

    def begin(self, now: Micros, rows: int, queued: int) -> None:
        """A poll that began at `now` has given rows, which had been ready for `queued` µs."""
        self._open = now, rows, queued

    def end(self, now: Micros) -> None:
        """All that the batch caused is handed on."""
        assert self._open is not None
        began, rows, queued = self._open
        self._open = None
        with self._changing:
            sums = self._seconds.setdefault(now // MICROS, BatchSums())
            sums.add(rows, queued, max(0, now - began))

    def take(self) -> Mapping[str, Sequence[int]]:
        """What came since the last call, by second: the fields of `BatchSums`, in order."""
        with self._changing:
            taken, self._seconds = self._seconds, {}
        return {str(second): astuple(sums) for second, sums in taken.items()}
