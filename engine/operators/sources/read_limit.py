"""How many rows a source subtask may read now: a bucket that fills at the limit.

    rate × time ──▶ bucket (a quarter of a second at most) ──a twentieth at least──▶ batch

A limit holds reading up and nothing else: no row waits, and barriers do not. What is read, and in
which order, stays the same, so the output does.

Units    rows per second; 0 is: nothing. Times are µs of processing time.
Order    never more than rate × time + one bucket, over any stretch of time.
"""

from __future__ import annotations

from engine.elements import MAX_TIME, MIN_TIME, Micros

MICROS = 1_000_000

FULL_S = 0.25
"""Who was held up may catch up so much: less would lose rows of the limit to a busy machine."""

FOREVER = 1 << 60
"""µs: a rate of nothing, or of next to nothing, waits so long at least."""

LOT_S = 0.05
"""Who has read all it may waits for so much: a batch has a price, whatever its size."""


class ReadLimit:
    """The bucket of one subtask; without a limit it is always full."""

    def __init__(self) -> None:
        self.withheld = 0
        """µs for which the limit, and nothing else, has kept from reading."""
        self._rate: float | None = None
        self._filled = 0.0
        self._at = Micros(0)
        self._waits_since: Micros | None = None

    def set(self, rate: float | None, now: Micros) -> None:
        """Fill at another rate from now on; None: no limit."""
        self._fill(now)
        self._rate = rate
        self._at = now

    def rows(self, now: Micros, max_rows: int) -> int:
        """How many rows may be read now, `max_rows` at most; 0 while it is not worth a batch."""
        if self._rate is None:
            return max_rows
        self._fill(now)
        return min(max_rows, int(self._filled)) if self._filled >= self._lot(max_rows) else 0

    def spend(self, rows: int) -> None:
        """So many were read."""
        if self._rate is not None:
            self._filled -= rows

    def wait(self, now: Micros, max_rows: int) -> Micros:
        """A poll is over: when `rows` will not be 0. Until then reading is withheld."""
        allowed_at = self._allowed_at(now, max_rows)
        self._waits_since = now if allowed_at > now else None
        return allowed_at

    def held_up(self, now: Micros, blocked: int) -> int:
        """A poll begins: µs for which the last one had to wait, but for the `blocked` ones."""
        if self._waits_since is None:
            return 0
        waited = max(0, now - self._waits_since - blocked)
        self.withheld += waited
        return waited

    def _allowed_at(self, now: Micros, max_rows: int) -> Micros:
        if self._rate is None:
            return MIN_TIME
        self._fill(now)
        missing = self._lot(max_rows) - self._filled
        if missing <= 0:
            return MIN_TIME
        if missing * MICROS >= self._rate * FOREVER:
            return MAX_TIME
        return Micros(now + int(missing / self._rate * MICROS) + 1)

    def _lot(self, max_rows: int) -> float:
        return max(1.0, min((self._rate or 0.0) * LOT_S, max_rows))

    def _fill(self, now: Micros) -> None:
        if self._rate is None:
            return
        passed = max(0, now - self._at)
        room = max(1.0, self._rate * FULL_S)
        self._filled = min(self._filled + passed * self._rate / MICROS, room)
        self._at = now
