"""The flights job over a recording that goes on when a test says so, not with the clock.

    recording = RecordedFlights(tmp_path)      up to February
    recording.code("flights.py")               the file of a version, which reads it
    recording.up_to(5)                         April has been recorded too

Event time waits for slow machines: whatever they take, a job is in the same month.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.truth import EXAMPLES

IMPORT = "from engine.connectors.playback import PlaybackSource\n"
SOURCE = """
from engine.connectors.paced_log import PacedLog, PacedReader
from engine.connectors.playback import PlaybackSource as Playback


class Recorded(PacedLog):
    def __init__(self, frame):
        self.frame, self.length = frame, frame.height

    def appended(self, elapsed):
        until = datetime.fromisoformat(Path({recorded!r}).read_text())
        return self.frame["scheduled"].search_sorted(until)

    def due(self, row):
        return 0

    def rows(self, lo, hi):
        return self.frame[lo:hi]


class PlaybackSource(Playback):
    def open(self, split, position):
        rows = self._table().filter(self._split_id() == split).sort("scheduled").collect()
        return PacedReader(split, Recorded(rows), self.anchor, False, position)

"""


class RecordedFlights:
    """A file says how far the recording goes."""

    def __init__(self, folder: Path) -> None:
        self._file, self._moved = folder / "recorded", folder / ".recorded"
        self.up_to(2)

    def up_to(self, month: int) -> datetime:
        """Let it go on to the first of a month, 13 is the year's end; what is closed by then."""
        years, month_index = divmod(month - 1, 12)
        end = datetime(2013 + years, month_index + 1, 1, tzinfo=UTC)
        self._moved.write_text(end.isoformat())
        self._moved.replace(self._file)
        return end - timedelta(days=3)  # a day's bound, and a day

    def code(self, name: str) -> bytes:
        """The file of a version."""
        source = SOURCE.format(recorded=str(self._file))
        return (EXAMPLES / name).read_text().replace(IMPORT, source).encode()
