"""A log that a producer appends to at its own pace: what recordings and generators are read as.

    rows   r0 r1 r2 r3 r4 | r5 r6 ...      the bar is `now`: a reader sees only what lies before it
                 ^ position

A reader that is behind the bar reads as fast as it can until it reaches it, and at the producer's
pace from then on. That is how a real log behaves, and what makes a replay honest.

Position   {"row": next row, "anchor_us": when the producer began}. The anchor travels with the
           position, so a job that resumes from a snapshot finds the log where it has got to by
           now, not one that begins anew.
Guarantee  replayable from any position: exactly once with a sink that is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime

import polars as pl

from engine.connectors.contract import Json, Polled, SplitReader
from engine.elements import Micros
from engine.errors import ConfigError, SourceError

FILL_ROWS = 256
"""A reader at the bar comes again when so many rows lie before it: a batch has a price, whatever
its size, and asking for each few rows would cost a core at any pace."""

MIN_WAIT = 5_000
"""µs before which it does not: at a high rate that is thousands of rows."""

MAX_WAIT = 100_000
"""µs after which it comes again with fewer: nobody sees a tenth of a second in a slow stream."""

END_WAIT = 1_000_000
"""µs between two polls at the end of a log that stays open."""


class PacedLog(ABC):
    """The rows of one split, and when each is appended, in µs since the producer began."""

    length: int | None
    """How many rows there will ever be; None when endless."""

    @abstractmethod
    def appended(self, elapsed: int) -> int:
        """How many rows the producer has appended `elapsed` µs after it began."""

    @abstractmethod
    def due(self, row: int) -> int:
        """How many µs after the beginning `row` is appended."""

    @abstractmethod
    def rows(self, lo: int, hi: int) -> pl.DataFrame:
        """Rows [lo, hi): the same ones each time."""


class PacedReader(SplitReader):
    """Reads a paced log from a position on."""

    def __init__(
        self, split: str, log: PacedLog, anchor: Micros, bounded: bool, position: Json | None
    ) -> None:
        self._log = log
        self._bounded = bounded
        self._row, self._anchor = (0, anchor) if position is None else _parse(split, position)
        if log.length is not None and self._row > log.length:
            msg = (
                f"split '{split}' ends before the stored position: got row {self._row} of "
                f"{log.length}; restore the data that the snapshot was taken on"
            )
            raise SourceError(msg)

    def poll(self, max_rows: int, now: Micros) -> Polled:
        """Return the next rows that have been appended by `now`."""
        readable = self._log.appended(now - self._anchor)
        if self._row < readable:
            lo, self._row = self._row, min(self._row + max_rows, readable)
            wait = self._next_batch(now) if self._row == readable else None
            pending, ready_at = readable - self._row, Micros(self._anchor + self._log.due(lo))
            return Polled(self._log.rows(lo, self._row), wait, False, pending, ready_at=ready_at)
        if self._row == self._log.length:
            wait = None if self._bounded else Micros(now + END_WAIT)
            return Polled(retry_at=wait, finished=self._bounded, pending_rows=0)
        return Polled(retry_at=self._next_batch(now), pending_rows=0)

    def _next_batch(self, now: Micros) -> Micros | None:
        """When enough rows will lie before the bar; None at the end."""
        length = self._log.length
        if self._row == length:
            return None
        last = (
            self._row + FILL_ROWS - 1 if length is None else min(self._row + FILL_ROWS, length) - 1
        )
        first_due, last_due = (self._anchor + self._log.due(row) for row in (self._row, last))
        full = max(last_due, now + MIN_WAIT)
        return Micros(max(first_due, min(full, now + MAX_WAIT)))

    @property
    def position(self) -> Json:
        """The next row, and when the log began."""
        return {"row": self._row, "anchor_us": self._anchor}


def anchor_of(position: Json | None, given: Micros) -> Micros:
    """When the producer began: the stored moment wins over the one that a job file gives."""
    anchor = position.get("anchor_us") if isinstance(position, dict) else None
    return Micros(anchor) if isinstance(anchor, int) else given


def rows_missing(split: str, length: int | None, position: Json | None) -> str:
    """What a log of so many rows, None is endless, lacks of what was read of it."""
    row = 0 if position is None else _parse(split, position)[0]
    if length is None or row <= length:
        return ""
    return f"rows from {row:,} on: it ends at row {length:,}"


def micros_of(moment: datetime) -> Micros:
    """Epoch µs of an aware datetime.

    >>> from datetime import timezone
    >>> micros_of(datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc))
    1000000
    """
    if moment.tzinfo is None:
        given = moment.isoformat()
        msg = f"anchor has no time zone: got {given}; pass e.g. {given}+00:00"
        raise ConfigError(msg)
    # Through whole parts: a float of seconds would round the microseconds.
    return Micros(int(moment.timestamp() // 1) * 1_000_000 + moment.microsecond)


def _parse(split: str, position: Json) -> tuple[int, Micros]:
    match position:
        case {"row": int(row), "anchor_us": int(anchor)} if row >= 0:
            return row, Micros(anchor)
    msg = (
        f"split '{split}' has a stored position of another kind of source: got {position!r}; "
        "give the new source an uid of its own"
    )
    raise SourceError(msg)
