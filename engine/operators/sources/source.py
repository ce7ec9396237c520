"""The source operator: the splits of one subtask, read so that event time advances evenly.

    poll --> the split furthest behind in event time --> Batch, then Watermark when it advanced
    every split silent for `idle_after` --> Idle
    every split finished --> Watermark(MAX_TIME), EndOfInput

Order    the split with the smallest watermark is read first, and none that is too far ahead of the
         others (`drift.py`), so that in a replay no split buffers its future in another's windows.
         Without event time splits take turns.
Late     each batch holds rows of one split in split order, and rows are judged by its watermark.
Guarantee  position, watermark, idleness and end of each split are in every snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import ClassVar

import polars as pl

from engine.connectors.contract import Polled, Source
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
from engine.operators.sources.drift import Drift
from engine.operators.sources.last_rows import LastRows
from engine.operators.sources.read_limit import ReadLimit
from engine.operators.sources.source_splits import OpenSplit, SplitState
from engine.operators.sources.source_steps import SteppedSource
from engine.operators.span import moment_text
from engine.watermarks import SplitWatermarks, WatermarkStrategy

__all__ = ["SourceOperator", "SourceRun", "SplitState", "assigned"]

RETRY_AFTER = Micros(10_000)
"""When to ask a split again that gave nothing and named no time: short against any latency
that people notice, long against the cost of asking."""

SHORTEST_PAUSE = Micros(1_000)
"""Not sooner, even when a split wants it: at high speed rows are due one by one, and a batch of
a millisecond costs as much as a batch of one row."""

_NEVER = MAX_TIME


class SourceOperator:
    """Reads a source, and stamps event time when it has a strategy. Pickled into the job graph."""

    name: ClassVar[str] = "source"
    states: ClassVar[tuple[()]] = ()

    def __init__(self, source: Source, watermarks: WatermarkStrategy | None = None) -> None:
        self.source = source
        self.watermarks = watermarks
        self.until: Micros | None = None
        """Where its splits end: with the row that takes their watermark there. None: nowhere."""

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        facts = {"source": type(self.source).__name__}
        if isinstance(self.source, SteppedSource):
            facts = {"source": type(self.source.source).__name__, "steps": str(self.source)}
        if self.watermarks is not None:
            facts["watermarks"] = str(self.watermarks)
            alignment = self.watermarks.alignment
            facts["alignment"] = "none" if alignment is None else str(alignment)
        if self.until is not None:
            facts["until"] = moment_text(self.until)
        return facts


def assigned(ids: Iterable[str], subtask: int, parallelism: int) -> tuple[str, ...]:
    """The splits of a subtask: every `parallelism`-th of the sorted ids.

    >>> assigned(["c", "a", "b"], 0, 2), assigned(["c", "a", "b"], 1, 2)
    (('a', 'c'), ('b',))
    """
    return tuple(sorted(set(ids))[subtask::parallelism])


def _last_rows(operator: SourceOperator) -> LastRows | None:
    if operator.until is None or operator.watermarks is None:
        return None
    return LastRows(operator.source, operator.watermarks, operator.until)


class SourceRun:
    """The source of one subtask while it runs. Owned by one thread."""

    def __init__(
        self,
        operator: SourceOperator,
        subtask: int,
        parallelism: int,
        restored: Mapping[str, SplitState],
        *,
        shared: bool = False,
    ) -> None:
        """Open the splits of this subtask where a snapshot left them. Raises SourceError.

        `shared`: whether other subtasks are aligned with this one.
        """
        self._bounded = operator.source.bounded
        self._strategy = operator.watermarks
        self._last_rows = _last_rows(operator)
        # A split that the source no longer lists stays: the snapshot's promise outlives a setting.
        ids = {*operator.source.splits(), *restored}
        self._splits = [
            self._open(operator.source, id_, restored.get(id_))
            for id_ in assigned(ids, subtask, parallelism)
        ]
        self._readers = min(len(ids), parallelism)
        """Subtasks of the operator that have splits."""
        self._reading = [split for split in self._splits if not self._is_over(split)]
        self.watermark = MIN_TIME
        """What was last sent since this attempt began."""
        self.ended = False
        self.skipped = 0
        """Records left out because they cannot be read, in this attempt."""
        self.report: Micros | None = None
        """What the last poll has to tell the coordinator: the watermark others may wait for."""
        self.queued = 0
        """µs for which the rows of the last batch had been ready, as far as is known."""
        self.again_at = MIN_TIME
        """When to poll again; MAX_TIME: not before `align`, or never."""
        self._told_idle = False
        self._turns = 0
        self._blocked = 0
        self._limit = ReadLimit()
        self._idle_after = None if self._strategy is None else self._strategy.idle_after
        alignment = None if self._strategy is None else self._strategy.alignment
        self._drift = None
        if alignment is not None:
            self._drift = Drift(alignment, self._idle_after, shared=shared)

    @property
    def splits(self) -> dict[str, SplitState]:
        """The state of every split of this subtask."""
        return {split.id: split.state for split in self._splits}

    @property
    def pending_rows(self) -> int | None:
        """Rows that could be read at once; None when a split does not know."""
        pending = [split.pending_rows for split in self._reading]
        known = [rows for rows in pending if rows is not None]
        return sum(known) if len(known) == len(pending) else None

    @property
    def newest(self) -> Micros | None:
        """The largest event time that any split has given; None when there is none."""
        times = [split.watermarks.newest for split in self._splits if split.watermarks is not None]
        return max((time for time in times if time is not None), default=None)

    @property
    def ahead(self) -> Micros | None:
        """How far the furthest split is ahead of the slowest of its group; None when unknown."""
        known = [split.watermark for split in self._reading if split.watermark != MIN_TIME]
        if self._drift is None or not known or self._drift.group_lowest == MIN_TIME:
            return None
        return Micros(max(known) - min(*known, self._drift.group_lowest))

    @property
    def _slowest(self) -> Micros:
        """Event time of the split that is furthest behind; MIN_TIME when none is known."""
        known = (split.watermark for split in self._reading if split.watermark != MIN_TIME)
        return min(known, default=MIN_TIME)

    def align(self, lowest: Micros) -> bool:
        """Hear how far the slowest of the group is; say whether to poll at once."""
        if self._drift is not None:
            self._drift.group_lowest = lowest
        return any(split.paused for split in self._splits)

    def limit(
        self, rate: float | None, reading: int, now: Micros, speed: float | None = None
    ) -> None:
        """Read at most `rate` rows a second with all subtasks, of which `reading` have not ended.

        Each has an equal share. `speed`: event time of each passes at most so many times as fast as
        processing time. None: no limit. Only reading waits: the output is the same.
        """
        share = max(1, min(reading, self._readers))
        self._limit.set(None if rate is None else rate / share, now, speed)
        self._limit.arrived(self._slowest)

    def poll(self, now: Micros, max_rows: int, blocked: int) -> list[Element]:
        """Read from one split; `blocked`: µs since the last poll in which none was possible."""
        self.report = None
        if self.ended:
            return []
        self._blocked += blocked + self._limit.held_up(now, blocked)
        self._pause(now)
        elements: list[Element] = []
        batch = self._read(now, max_rows)
        self._limit.arrived(self._slowest)
        if batch is not None:
            elements.append(batch)
            self._told_idle = False
        elements += self._time(now)
        if self._drift is not None:
            self.report = self._drift.report(self._lowest(now))
        # Whoever was waited for may have come closer, or ended: nobody else would wake the others.
        self._pause(now)
        self.again_at = max(self._next_poll(now), self._limit.wait(now, max_rows))
        return elements

    def close(self) -> None:
        """Close every open split."""
        for split in self._splits:
            if split.reader is not None:
                split.reader.close()

    def _open(self, source: Source, id_: str, restored: SplitState | None) -> OpenSplit:
        state = restored or SplitState(None)
        reader = None if state.finished else source.open(id_, state.position)
        strategy = self._strategy
        watermarks = None
        if strategy is not None:
            watermarks = SplitWatermarks(strategy, state.watermark, state.generator)
        return OpenSplit(id_, reader, state, watermarks)

    def _lowest(self, now: Micros) -> Micros:
        """The watermark that others may have to wait for; MAX_TIME when there is none."""
        assert self._drift is not None
        active, patience, lowest = self._active(now), self._drift.patience, MAX_TIME
        for split in self._reading:
            if not (split.idle or split.silent(active, patience)):
                lowest = min(lowest, split.watermark)
        return lowest

    def _pause(self, now: Micros) -> None:
        """Say of every split whether it is too far ahead."""
        if self._drift is None:
            return
        limit = self._drift.limit(self._lowest(now))
        for split in self._reading:
            split.paused = split.watermark > limit
            if split.paused:
                # It may have rows that it must not give: its silence begins anew.
                split.silent_since = None

    def _next_poll(self, now: Micros) -> Micros:
        """When a split can be read, or its silence comes to mean something."""
        times = [split.again_at for split in self._reading if not split.paused]
        for split in self._reading:
            if split.silent_since is not None and not split.idle:
                times += self._deadlines(split.silent_since, now)
        return min(times, default=_NEVER)

    def _deadlines(self, silent_since: Micros, now: Micros) -> list[Micros]:
        """When a silence will be too long, on the clock that does not stand still."""
        patience = None if self._drift is None else self._drift.patience
        lengths = [length for length in (self._idle_after, patience) if length is not None]
        ends = [Micros(silent_since + self._blocked + length) for length in lengths]
        return [end for end in ends if end > now]

    def _read(self, now: Micros, max_rows: int) -> Batch | None:
        """Ask the splits that are due, furthest behind first, until one gives rows."""
        due = [split for split in self._reading if not split.paused and split.again_at <= now]
        for split in sorted(due, key=lambda split: (split.watermark, split.turn, split.id)):
            rows = self._limit.rows(now, max_rows)
            if not rows:
                return None
            self._turns += 1
            split.turn = self._turns
            batch = self._poll_split(split, rows, now)
            if batch is not None:
                return batch
        return None

    def _poll_split(self, split: OpenSplit, max_rows: int, now: Micros) -> Batch | None:
        assert split.reader is not None
        before = None if self._last_rows is None else deepcopy(split.state)
        polled: Polled = split.reader.poll(max_rows, now)
        split.pending_rows = polled.pending_rows
        self.skipped += polled.skipped
        self._limit.spend(polled.read)
        frame, finished = polled.frame, polled.finished
        batch = None
        if frame is not None and frame.height:
            self.queued = split.queued(now, polled.ready_at)
            split.idle, split.silent_since = False, None
            split.again_at = MIN_TIME
            if polled.retry_at is not None and polled.retry_at > now:
                split.again_at = Micros(max(polled.retry_at, now + SHORTEST_PAUSE))
            stamped = self._stamp(split, frame)
            if before is not None and self._is_over(split):
                stamped, finished = self._cut(split, before, polled.read, now)
            batch = Batch(stamped)
        else:
            wished = polled.retry_at if polled.retry_at is not None else now + RETRY_AFTER
            split.again_at = Micros(max(wished, now + SHORTEST_PAUSE))
            if split.silent_since is None:
                split.silent_since = self._active(now)
            else:
                # Nothing came while the limit held us up: that time was silent too.
                silent_since = split.silent_since + split.withheld - self._limit.withheld
                split.silent_since = Micros(silent_since)
        split.asked_at, split.withheld = now, self._limit.withheld
        if finished:
            split.finish()
        if self._is_over(split):
            self._reading.remove(split)
        return batch

    def _is_over(self, split: OpenSplit) -> bool:
        """Whether nothing more of it is read."""
        return split.finished or (self._last_rows is not None and self._last_rows.has(split))

    def _cut(
        self, split: OpenSplit, before: SplitState, records: int, now: Micros
    ) -> tuple[pl.DataFrame, bool]:
        """The part of a split's last batch that is read; whether the split has no more."""
        assert self._last_rows is not None
        return self._last_rows.read(split, before, records, now)

    def _stamp(self, split: OpenSplit, frame: pl.DataFrame) -> pl.DataFrame:
        if split.watermarks is None:
            return frame
        before = split.watermark
        stamped = split.watermarks.stamp(frame)
        if self._drift is not None:
            self._drift.on_batch(before, split.watermark)
        return stamped

    def _active(self, now: Micros) -> Micros:
        """A clock that stands still while this subtask is held up by others."""
        return Micros(now - self._blocked)

    def _time(self, now: Micros) -> Sequence[Element]:
        """What is to be said about event time after a poll."""
        reading = self._reading
        if not reading and (self._bounded or self._splits or self._last_rows is not None):
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

    def _mark_idle(self, reading: Sequence[OpenSplit], now: Micros) -> None:
        if self._idle_after is None:
            return
        for split in reading:
            split.idle = split.idle or split.silent(self._active(now), self._idle_after)

    def _say_idle(self) -> Sequence[Element]:
        if self._told_idle:
            return []
        self._told_idle = True
        return [Idle()]
