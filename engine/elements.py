"""What flows through a channel: batches of rows, and the control elements between them.

    channel  =  (Batch | Watermark | Idle | Barrier | LatencyMarker | EndOfInput)*

Units    event time is int64 microseconds since 1970 UTC, everywhere inside the engine.
Shapes   a batch is an immutable Polars frame. Three columns are reserved and never dropped:
         `event_time` (Int64, µs) on streams that have event time; `row_watermark` (Int64, µs,
         nullable), which is present only when some row lies behind the watermark of its own split;
         `key_group` (UInt16), added where a keyed stream is partitioned, so that keys hash once.
Order    a watermark W promises: no later row of this channel has event_time < W, except rows that
         carry a `row_watermark` and are judged by that. A window [start, end) fires when W >= end.
Late     a row is late for a window when its `row_watermark` >= the window's end. The mark is made
         at the source, in split order, so batch size, parallelism, speed and restores cannot
         change what is late.
After    EndOfInput a channel carries no batch and no watermark, but still barriers: that is how a
         finished source takes part in checkpoints.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

import polars as pl

Micros = NewType("Micros", int)

MIN_TIME = Micros(-(2**63))
"""The watermark of a channel that has said nothing yet."""

MAX_TIME = Micros(2**63 - 1)
"""The watermark after the end of input: every window fires."""

EVENT_TIME = "event_time"
ROW_WATERMARK = "row_watermark"
KEY_GROUP = "key_group"
RESERVED_COLUMNS = (EVENT_TIME, ROW_WATERMARK, KEY_GROUP)


class SnapshotKind(StrEnum):
    """Who owns a snapshot: the engine, or a person."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"


class AfterBarrier(StrEnum):
    """What a source does once it has sent the barrier of a snapshot."""

    CONTINUE = "continue"
    STOP = "stop"
    """Read no more rows: the job ends when the snapshot is complete, and can be resumed exactly."""
    SUSPEND = "suspend"
    """As STOP, but the job goes on from the snapshot, in another attempt."""
    DRAIN = "drain"
    """As STOP, and send the last watermark before the barrier, so that every window fires."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows, as columns."""

    frame: pl.DataFrame

    def __repr__(self) -> str:
        return f"Batch({self.frame.height} rows)"


@dataclass(frozen=True, slots=True)
class Watermark:
    """No later row of this channel has event_time < time."""

    time: Micros


@dataclass(frozen=True, slots=True)
class Idle:
    """The channel has nothing to say for now: do not wait for its watermark.

    Any later batch or watermark of the channel ends the idleness.
    """


@dataclass(frozen=True, slots=True)
class Barrier:
    """Everything before me belongs to the snapshot, nothing after me does."""

    checkpoint_id: int
    kind: SnapshotKind = SnapshotKind.CHECKPOINT
    then: AfterBarrier = AfterBarrier.CONTINUE
    triggered_ms: int = 0
    """When the coordinator asked, epoch ms: for statistics only."""
    folder: str = ""
    """Where the files of the snapshot go: travels with the barrier, so that no task has to wait
    for another message."""
    base: int | None = None
    """The complete checkpoint that this one may build on, 0: none. None for one that is whole, and
    that no later one builds on: a savepoint."""


@dataclass(frozen=True, slots=True)
class LatencyMarker:
    """Measures how long rows take: it queues as they do, passes by operators, changes nothing."""

    source: str
    """Id of the vertex that sent it."""
    sent_at: Micros
    """Processing time."""
    number: int
    """It leaves on one channel per edge: each number on another."""


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """No batch or watermark follows."""


Element = Batch | Watermark | Idle | Barrier | LatencyMarker | EndOfInput
