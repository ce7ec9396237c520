"""The contract of connectors: sources of replayable splits, sinks that commit in two phases.

A connector sees nothing of the runtime: the time it may need is passed in, and what must survive
a crash travels as JSON positions and committables.

Guarantee  exactly once needs both sides: a source whose splits can be read again from any
           position, and a sink whose `commit` is idempotent or whose writes overwrite themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.elements import Micros
from engine.errors import GraphError, SourceError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Polled:
    """What one poll of a split gave.

    `frame` is None when there is nothing now. `retry_at` says when to ask again (processing time,
    µs; None: at once after rows, else whenever the runtime likes). `finished` ends the split for
    ever.
    `pending_rows` is how many more rows could be read at once, None when unknown. `skipped` counts
    records that were left out because they cannot be read. `ready_at` is when the first row of
    `frame` could have been read (processing time, µs; None when unknown): for statistics.
    `rows_read` is how many rows of the split were read, when `frame` does not have them all.
    """

    frame: pl.DataFrame | None = None
    retry_at: Micros | None = None
    finished: bool = False
    pending_rows: int | None = None
    skipped: int = 0
    ready_at: Micros | None = None
    rows_read: int | None = None

    @property
    def read(self) -> int:
        """How many records of the split were read: what a limit of reading counts."""
        if self.rows_read is not None:
            return self.rows_read + self.skipped
        return (0 if self.frame is None else self.frame.height) + self.skipped


class SplitReader(ABC):
    """Reads one split, in order. Owned by one thread."""

    @abstractmethod
    def poll(self, max_rows: int, now: Micros) -> Polled:
        """Return at most `max_rows` next rows without blocking. `now` is processing time, µs."""

    @property
    @abstractmethod
    def position(self) -> Json:
        """Where the next row will be read: `open(split, position)` continues exactly here."""

    def close(self) -> None:
        """Release files and sockets. Called once, also after a failure."""
        return


class Source(ABC):
    """Describes what to read; pickled into the job graph: settings, not connections."""

    bounded: bool = False
    """Whether every split ends by itself."""

    @property
    @abstractmethod
    def schema(self) -> Mapping[str, pl.DataType]:
        """Columns and types of every frame; checked against the graph before the job starts."""

    @abstractmethod
    def splits(self) -> Sequence[str]:
        """Ids of the splits, stable across restarts. Called on every start."""

    @abstractmethod
    def open(self, split: str, position: Json | None) -> SplitReader:
        """Open a split at a position, or at its beginning. Raises SourceError."""

    def position_at(self, split: str, stored: Json | None, time: Micros | None) -> Json:
        """Where the first row of that time, or a later one, is; without a time, the earliest row.

        The time is the source's own: when a row came to be there. `stored`: the position of a
        snapshot, for what has to stay as it was. Raises SourceError, as sources do that cannot find
        rows by time.
        """
        if time is None:
            return None
        msg = (
            f"split '{split}' cannot begin at a time: {type(self).__name__} finds no rows by time; "
            "begin where the snapshot left it, or at its earliest row"
        )
        raise SourceError(msg)

    def missing(self, split: str, position: Json | None) -> str | None:
        """What `open(split, position)` would need and is there no more, for people: "" is nothing.

        None: this source cannot tell. Asked before a job starts from a snapshot.
        """
        return None


@dataclass(frozen=True, slots=True)
class SinkContext:
    """Who is writing. `attempt_id` differs between any two attempts of any two jobs."""

    job_id: str
    attempt_id: str
    subtask: int
    parallelism: int
    count: Callable[[str, int], None] = lambda _name, _amount: None
    """Adds to a counter of the operator: what a writer leaves out is never silent."""


class SinkWriter(ABC):
    """Writes for one subtask. Owned by one thread. The order of calls:

    recover (subtask 0 only, once, before any write), then write* prepare commit* ... close.

    Several checkpoints may be prepared before the first of them is committed; they are committed in
    the order in which they were prepared.
    """

    @abstractmethod
    def write(self, frame: pl.DataFrame) -> None:
        """Take rows. Raises SinkError."""

    @abstractmethod
    def prepare(self, checkpoint_id: int) -> Json | None:
        """Make all rows so far durable, but not yet visible; return what `commit` needs, or None.

        Called when the barrier passes. The value is stored in the snapshot.
        """

    def commit(self, committable: Json) -> None:
        """Make visible what `prepare` staged. Called after the checkpoint is complete, possibly
        again after a crash, possibly by another subtask: must be idempotent.
        """
        return

    def recover(self, committables: Sequence[Json]) -> None:
        """Commit what the restored snapshot staged, then drop what any earlier attempt left over.

        Only subtask 0 is asked, with the committables of all subtasks, before any subtask writes.
        """
        for committable in committables:
            self.commit(committable)

    def close(self) -> None:
        """Release files and sockets; leave staged data where it is."""
        return


def require_columns(schema: Mapping[str, pl.DataType], columns: Iterable[str], target: str) -> None:
    """Raise GraphError when a sink needs a column that the stream does not have."""
    missing = [column for column in columns if column not in schema]
    if missing:
        msg = (
            f"sink to {target} needs column {missing[0]!r}: the stream has {', '.join(schema)}; "
            "add the column before the sink, or name another one"
        )
        raise GraphError(msg)


class Sink(ABC):
    """Describes where to write; pickled into the job graph: settings, not connections."""

    @abstractmethod
    def open(self, context: SinkContext) -> SinkWriter:
        """Open a writer for one subtask. Raises SinkError."""

    @abstractmethod
    def shadow(self, name: str) -> Sink:
        """The same sink writing beside its target, for a replay called `name`, e.g. "r-1"."""

    def check(self, schema: Mapping[str, pl.DataType]) -> None:
        """Refuse a stream that lacks a column that this sink needs. Raises GraphError.

        Called when the graph is built, with the columns of the stream, `event_time` among them.
        """
        return

    def describe(self) -> Mapping[str, str]:
        """Where this sink writes, for people: e.g. {"kind": "parquet", "target": "out/daily"}."""
        return {"kind": type(self).__name__}
