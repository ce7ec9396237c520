"""The span of event time that a job writes: from one moment on, up to another.

    rows ──event_time in [since, until)──▶ sink         others pass by it

Guarantee  of two jobs of which one writes up to T and the other from T on, exactly one writes each
           row, whatever happens to either of them; and each window, with all its corrections.
Units      µs of event time; a window's result has the last microsecond of its window.
Late       a row that came when event time was past T by more than any window allows is one from T
           on, whatever its event time: the sources of the first job have ended before it.
Errors     ConfigError for what is no moment, or for an end that is not after the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl

from engine.elements import EVENT_TIME, MAX_TIME, MIN_TIME, ROW_WATERMARK, Micros
from engine.errors import ConfigError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """Event times that are written: [since, until)."""

    since: Micros = MIN_TIME
    until: Micros = MAX_TIME
    lateness: int = 0
    """µs by which rows may be late and still correct a window, over all steps of the job."""

    @property
    def is_everything(self) -> bool:
        """Whether all rows are written, whatever their event time."""
        return self.since == MIN_TIME and self.until == MAX_TIME

    def part(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows that are written.

        >>> frame = pl.DataFrame({"event_time": [1, 2, 3, 4]})
        >>> Span(Micros(2), Micros(4)).part(frame)["event_time"].to_list()
        [2, 3]
        """
        if self.is_everything:
            return frame
        late = ROW_WATERMARK in frame.columns
        return frame.filter(self._after(self.since, late) & ~self._after(self.until, late))

    def end_of_input(self) -> Micros:
        """The watermark with which a split has given all rows before `until`."""
        return Micros(self.until + self.lateness + 1)

    def _after(self, moment: Micros, late: bool) -> pl.Expr:
        """Whether a row is one from that moment on."""
        if moment in (MIN_TIME, MAX_TIME):
            return pl.lit(moment == MIN_TIME)
        after = pl.col(EVENT_TIME) >= moment
        if late:
            behind = pl.col(ROW_WATERMARK) > moment + self.lateness
            after |= behind.fill_null(value=False)
        return after

    def describe(self) -> dict[str, str]:
        """Its ends, for people; nothing where it has none."""
        facts = {}
        if self.since != MIN_TIME:
            facts["from"] = moment_text(self.since)
        if self.until != MAX_TIME:
            facts["until"] = moment_text(self.until)
        return facts


def span_of(since: str | None, until: str | None, names: tuple[str, str]) -> Span:
    """A span from settings of these names. Raises ConfigError."""
    first = MIN_TIME if since is None else parse_moment(since, f"setting {names[0]}")
    last = MAX_TIME if until is None else parse_moment(until, f"setting {names[1]}")
    if first >= last:
        msg = (
            f"setting {names[1]} is not after {names[0]}: got {until} and {since}, so no row "
            "would be written; give a later one"
        )
        raise ConfigError(msg)
    return Span(first, last)


def parse_moment(text: str, subject: str) -> Micros:
    """A moment with a time zone, as ISO 8601 has it, in µs since 1970 UTC. Raises ConfigError.

    >>> parse_moment("1970-01-01T00:00:01Z", "setting x")
    1000000
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        msg = (
            f"{subject} is no moment with a time zone: got {text!r}; pass e.g. 2013-03-01T00:00:00Z"
        )
        raise ConfigError(msg)
    return Micros((moment - _EPOCH) // timedelta(microseconds=1))


def moment_text(micros: Micros) -> str:
    """A moment as `parse_moment` takes it.

    >>> moment_text(Micros(1_000_000))
    '1970-01-01T00:00:01+00:00'
    """
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()
