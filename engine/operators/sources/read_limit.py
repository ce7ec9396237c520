"""How many rows a source subtask may read now: buckets that fill at the limits.

    rate × time  ──▶ bucket (a quarter of a second at most) ──a twentieth at least──▶ batch
    speed × time ──▶ the same, of event time; rows are taken to lie as far apart as the last ones

A limit holds reading up and nothing else: no row waits, and barriers do not. What is read, and in
which order, stays the same, so the output does.

Units    rows per second; 0 is: nothing. A speed is event seconds per second. Times are µs.
Order    never more rows than rate × time + one bucket, over any stretch of time. Event time is
         ahead of speed × time by a bucket and what the last batch went beyond it: a gap between two
         rows cannot be seen before the second is read. It is waited for afterwards.
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
    """The buckets of one subtask; without a limit they are always full."""

    def __init__(self) -> None:
        self.withheld = 0
        """µs for which the limit, and nothing else, has kept from reading."""
        self._rate: float | None = None
        self._filled = 0.0
        self._at = Micros(0)
        self._waits_since: Micros | None = None
        self._pace = _Pace()

    def set(self, rate: float | None, now: Micros, speed: float | None = None) -> None:
        """Fill at other rates from now on; None: no limit."""
        self._fill(now)
        self._rate = rate
        self._at = now
        self._pace.set(speed, now)

    def rows(self, now: Micros, max_rows: int) -> int:
        """How many rows may be read now, `max_rows` at most; 0 while it is not worth a batch."""
        paced = self._pace.rows(now, max_rows)
        if self._rate is None:
            return paced
        self._fill(now)
        return min(paced, int(self._filled)) if self._filled >= self._lot(max_rows) else 0

    def spend(self, rows: int) -> None:
        """So many were read."""
        self._pace.rows_read(rows)
        if self._rate is not None:
            self._filled -= rows

    def arrived(self, time: Micros) -> None:
        """Event time of the slowest split is so far now."""
        self._pace.arrived(time)

    def wait(self, now: Micros, max_rows: int) -> Micros:
        """A poll is over: when `rows` will not be 0. Until then reading is withheld."""
        allowed_at = max(self._allowed_at(now, max_rows), self._pace.allowed_at(now))
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


class _Pace:
    """The bucket of event time."""

    def __init__(self) -> None:
        self._speed: float | None = None
        self._filled = 0.0
        self._at = Micros(0)
        self._time: Micros | None = None
        self._rows = 0
        """Read since event time has advanced the last time."""
        self._apart: float | None = None
        """µs of event time from one row to the next."""
        self._most = 1
        """Rows of the next batch: at most twice as many as of the last, whatever lies ahead."""

    def set(self, speed: float | None, now: Micros) -> None:
        self._speed, self._at, self._filled, self._time = speed, now, 0.0, None

    def rows(self, now: Micros, max_rows: int) -> int:
        if self._speed is None:
            return max_rows
        self._fill(now)
        if self._filled < self._lot:
            return 0
        known = self._most if not self._apart else max(1, int(self._filled / self._apart))
        return min(known, self._most, max_rows)

    def rows_read(self, rows: int) -> None:
        self._rows += rows
        self._most = max(1, 2 * rows)

    def arrived(self, time: Micros) -> None:
        """Take what event time has advanced; before its first row there is none."""
        if self._speed is None or time == MIN_TIME:
            return
        before, self._time = self._time, time
        if before is not None and time > before:
            self._filled -= time - before
            self._apart = (time - before) / self._rows if self._rows else self._apart
            self._rows = 0

    def allowed_at(self, now: Micros) -> Micros:
        if self._speed is None:
            return MIN_TIME
        self._fill(now)
        missing = self._lot - self._filled
        if missing <= 0:
            return MIN_TIME
        return Micros(min(MAX_TIME, now + int(missing / self._speed) + 1))

    @property
    def _lot(self) -> float:
        return (self._speed or 0.0) * LOT_S * MICROS

    def _fill(self, now: Micros) -> None:
        assert self._speed is not None
        passed = max(0, now - self._at)
        self._filled = min(self._filled + passed * self._speed, self._speed * FULL_S * MICROS)
        self._at = now
