"""The splits of one subtask: what a snapshot holds of each, and how it stands while it is read."""

from __future__ import annotations

from dataclasses import dataclass

from engine.connectors.contract import Json, SplitReader
from engine.elements import MIN_TIME, Micros
from engine.watermarks import SplitWatermarks


@dataclass(frozen=True, slots=True)
class SplitState:
    """A split in a snapshot."""

    position: Json
    watermark: Micros = MIN_TIME
    idle: bool = False
    finished: bool = False
    generator: Json = None
    """What a watermark generator of the author's remembers."""


class OpenSplit:
    """One split of a subtask: its reader, its watermarks, and how it stands."""

    def __init__(
        self,
        id_: str,
        reader: SplitReader | None,
        state: SplitState,
        watermarks: SplitWatermarks | None,
    ) -> None:
        self.id = id_
        self.reader = reader
        self.watermarks = watermarks
        self.idle = state.idle
        self.finished = state.finished
        self.pending_rows: int | None = None
        self.turn = 0
        self.again_at = MIN_TIME
        self.asked_at = MIN_TIME
        """When it was last polled."""
        self.silent_since: Micros | None = None
        """On the clock that stands still while the subtask is held up."""
        self.withheld = 0
        """µs for which a limit had held up the subtask when the split was last polled."""
        self.paused = False
        """Whether it is too far ahead of others to be read."""
        self._last_position = state.position

    @property
    def watermark(self) -> Micros:
        """How far event time of this split has come; MIN_TIME without event time."""
        return MIN_TIME if self.watermarks is None else self.watermarks.watermark

    @property
    def state(self) -> SplitState:
        """What a snapshot has to hold."""
        position = self._last_position if self.reader is None else self.reader.position
        generator = None if self.watermarks is None else self.watermarks.state
        return SplitState(position, self.watermark, self.idle, self.finished, generator)

    def queued(self, now: Micros, ready_at: Micros | None) -> int:
        """µs for which rows of a poll at `now` had been ready; `ready_at`: what the reader knows.

        Else they were ready when it wanted to be asked again, or was last asked.
        """
        if ready_at is None:
            known = max(self.again_at, self.asked_at)
            ready_at = now if known == MIN_TIME else known
        return max(0, now - ready_at)

    def silent(self, active: Micros, length: Micros) -> bool:
        """Whether it has given nothing for so long, though it was asked."""
        return self.silent_since is not None and active - self.silent_since >= length

    def finish(self) -> None:
        """It has ended: nothing of it stays open."""
        if self.reader is not None:
            self._last_position = self.reader.position
            self.reader.close()
        self.reader = None
        self.finished, self.idle, self.pending_rows = True, False, 0
