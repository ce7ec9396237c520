"""The source operator: the splits of one subtask, read so that event time advances evenly.

    poll --> the split furthest behind in event time --> Batch, then Watermark when it advanced
    every split silent for `idle_after` --> Idle
    every split finished --> Watermark(MAX_TIME), EndOfInput

Order    the split with the smallest watermark is read first, so that in a replay no split runs
         ahead and buffers its future in another's windows. Without event time splits take turns.
Late     each batch holds rows of one split in split order, and rows are judged by its watermark.
Guarantee  position, watermark, idleness and end of each split are in every snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.connectors.contract import Json, Polled, Source, SplitReader
from engine.elements import (
    MAX_TIME,
    MIN_TIME,
    Batch,
    Element,
    EndOfInput,
    Idle,
    Micros,
    Watermark,
)
from engine.watermarks import SplitWatermarks, WatermarkStrategy

RETRY_AFTER = Micros(10_000)
"""When to ask a split again that gave nothing and named no time: short against any latency
that people notice, long against the cost of asking."""

SHORTEST_PAUSE = Micros(1_000)
"""Not sooner, even when a split wants it: at high speed rows are due one by one, and a batch of
a millisecond costs as much as a batch of one row."""

_NEVER = MAX_TIME


@dataclass(frozen=True, slots=True)
class SplitState:
    """A split in a snapshot."""

    position: Json
    watermark: Micros = MIN_TIME
    idle: bool = False
    finished: bool = False


class SourceOperator:
    """Reads a source, and stamps event time when it has a strategy. Pickled into the job graph."""

    name: ClassVar[str] = "source"
    states: ClassVar[tuple[()]] = ()

    def __init__(self, source: Source, watermarks: WatermarkStrategy | None = None) -> None:
        self.source = source
        self.watermarks = watermarks

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        facts = {"source": type(self.source).__name__}
        if self.watermarks is not None:
            facts["watermarks"] = str(self.watermarks)
        return facts


def assigned(ids: Iterable[str], subtask: int, parallelism: int) -> tuple[str, ...]:
    """The splits of a subtask: every `parallelism`-th of the sorted ids.

    >>> assigned(["c", "a", "b"], 0, 2), assigned(["c", "a", "b"], 1, 2)
    (('a', 'c'), ('b',))
    """
    return tuple(sorted(set(ids))[subtask::parallelism])


class _Split:
    """One open split."""

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
        self.silent_since: Micros | None = None
        self._last_position = state.position

    @property
    def watermark(self) -> Micros:
        return MIN_TIME if self.watermarks is None else self.watermarks.watermark

    @property
    def state(self) -> SplitState:
        position = self._last_position if self.reader is None else self.reader.position
        return SplitState(position, self.watermark, self.idle, self.finished)

    def finish(self) -> None:
        if self.reader is not None:
            self._last_position = self.reader.position
            self.reader.close()
        self.reader = None
        self.finished, self.idle, self.pending_rows = True, False, 0


class SourceRun:
    """The source of one subtask while it runs. Owned by one thread."""

    def __init__(
        self,
        operator: SourceOperator,
        subtask: int,
        parallelism: int,
        restored: Mapping[str, SplitState],
    ) -> None:
        """Open the splits of this subtask where a snapshot left them. Raises SourceError."""
        self._bounded = operator.source.bounded
        self._strategy = operator.watermarks
        # A split that the source no longer lists stays: the snapshot's promise outlives a setting.
        ids = {*operator.source.splits(), *restored}
        self._splits = [
            self._open(operator.source, id_, restored.get(id_))
            for id_ in assigned(ids, subtask, parallelism)
        ]
        self.watermark = MIN_TIME
        """What was last sent since this attempt began."""
        self.ended = False
        self.skipped = 0
        """Records left out because they cannot be read, in this attempt."""
        self._told_idle = False
        self._turns = 0
        self._blocked = 0

    @property
    def splits(self) -> dict[str, SplitState]:
        """The state of every split of this subtask."""
        return {split.id: split.state for split in self._splits}

    @property
    def pending_rows(self) -> int | None:
        """Rows that could be read at once; None when a split does not know."""
        pending = [split.pending_rows for split in self._splits if not split.finished]
        known = [rows for rows in pending if rows is not None]
        return sum(known) if len(known) == len(pending) else None

    @property
    def newest(self) -> Micros | None:
        """The largest event time that any split has given; None when there is none."""
        times = [split.watermarks.newest for split in self._splits if split.watermarks is not None]
        return max((time for time in times if time is not None), default=None)

    @property
    def again_at(self) -> Micros:
        """When to poll again; MAX_TIME when there is nothing more to read."""
        return min((split.again_at for split in self._splits if not split.finished), default=_NEVER)

    def poll(self, now: Micros, max_rows: int, blocked: int) -> list[Element]:
        """Read from one split; `blocked`: µs since the last poll in which none was possible."""
        if self.ended:
            return []
        self._blocked += blocked
        elements: list[Element] = []
        batch = self._read(now, max_rows)
        if batch is not None:
            elements.append(batch)
            self._told_idle = False
        elements += self._time(now)
        return elements

    def close(self) -> None:
        """Close every open split."""
        for split in self._splits:
            if split.reader is not None:
                split.reader.close()

    def _open(self, source: Source, id_: str, restored: SplitState | None) -> _Split:
        state = restored or SplitState(None)
        reader = None if state.finished else source.open(id_, state.position)
        strategy = self._strategy
        watermarks = None if strategy is None else SplitWatermarks(strategy, state.watermark)
        return _Split(id_, reader, state, watermarks)

    def _read(self, now: Micros, max_rows: int) -> Batch | None:
        """Ask the splits that are due, furthest behind first, until one gives rows."""
        due = [split for split in self._splits if not split.finished and split.again_at <= now]
        for split in sorted(due, key=lambda split: (split.watermark, split.turn, split.id)):
            self._turns += 1
            split.turn = self._turns
            batch = self._poll_split(split, max_rows, now)
            if batch is not None:
                return batch
        return None

    def _poll_split(self, split: _Split, max_rows: int, now: Micros) -> Batch | None:
        assert split.reader is not None
        polled: Polled = split.reader.poll(max_rows, now)
        split.pending_rows = polled.pending_rows
        self.skipped += polled.skipped
        frame = polled.frame
        batch = None
        if frame is not None and frame.height:
            split.idle, split.silent_since, split.again_at = False, None, MIN_TIME
            batch = Batch(frame if split.watermarks is None else split.watermarks.stamp(frame))
        else:
            wished = polled.retry_at if polled.retry_at is not None else now + RETRY_AFTER
            split.again_at = Micros(max(wished, now + SHORTEST_PAUSE))
            if split.silent_since is None:
                split.silent_since = self._active(now)
        if polled.finished:
            split.finish()
        return batch

    def _active(self, now: Micros) -> Micros:
        """A clock that stands still while this subtask is held up by others."""
        return Micros(now - self._blocked)

    def _time(self, now: Micros) -> Sequence[Element]:
        """What is to be said about event time after a poll."""
        reading = [split for split in self._splits if not split.finished]
        if not reading and (self._bounded or self._splits):
            self.ended, self.watermark = True, MAX_TIME
            return [Watermark(MAX_TIME), EndOfInput()]
        self._mark_idle(reading, now)
        awake = [split for split in reading if not split.idle]
        if self._strategy is None or not awake:
            return self._say_idle()
        time = min(split.watermark for split in awake)
        if time <= self.watermark:
            return []
        self.watermark, self._told_idle = time, False
        return [Watermark(time)]

    def _mark_idle(self, reading: Sequence[_Split], now: Micros) -> None:
        idle_after = None if self._strategy is None else self._strategy.idle_after
        if idle_after is None:
            return
        for split in reading:
            since = split.silent_since
            if since is not None and self._active(now) - since >= idle_after:
                split.idle = True

    def _say_idle(self) -> Sequence[Element]:
        if self._told_idle:
            return []
        self._told_idle = True
        return [Idle()]
