"""The contract of keyed state: descriptors, handles, backends, frozen states.

    operator --ctx.state(descriptor)--> handle      read and write, on the subtask's thread
    backend.freeze()                --> FrozenState immutable references, taken at the barrier
    FrozenState.tables()            --> frames      built later, on another thread, one by one
    backend.freeze_increment(…)     --> FrozenChanges of states that are large: what has changed

Shapes   every state has one canonical table, the same for all backends: what snapshots hold.
         (key_group: UInt16, <key columns>, [slice_end: Int64 µs,] <value columns>), sorted.
         The value columns of a list begin with `index`, those of a map with `map_key`, those of
         rows with `event_time`, and those of frames with `row.index`.
Cost     `freeze` copies references, never rows; of an increment those of what has changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

import polars as pl

from engine.keygroups import KeyGroupRange

SLICE_END = "slice_end"
INDEX = "index"
MAP_KEY = "map_key"
ROW_INDEX = "row.index"
VALUE = "value"
TIME = "time"


class StateKind(StrEnum):
    """How a state is laid out and what its handle can do."""

    VALUE = "value"
    """One value per key, of one column or several: `ValueState`, `AggregatingState`."""
    LIST = "list"
    """Many values per key, in order: one row per element, column `index` first."""
    MAP = "map"
    """Values by a second key: one row per entry, column `map_key` first."""
    TIMERS = "timers"
    """A set of times per key: one row per timer."""
    ROWS = "rows"
    """Rows that wait for event time: in order of their time, then of their arrival."""
    FRAMES = "frames"
    """Many rows per key, in order, kept as columns: a table like that of a list."""
    HELD = "held"
    """Rows that joins hold to meet others: laid out as those that wait."""
    RUNS = "runs"
    """Immutable columnar runs of mergeable partials per slice of event time: windows."""


@dataclass(frozen=True, slots=True)
class StateDescriptor:
    """Names and types of one state of one operator. Handles are asked for by descriptor."""

    name: str
    kind: StateKind
    keys: Mapping[str, pl.DataType]
    """Key columns; none for a state that is the same on all subtasks: broadcast state."""
    values: Mapping[str, pl.DataType]
    defaults: Mapping[str, object] = field(default_factory=dict)
    """What rows of an older snapshot have in value columns that it did not know, as plain JSON. A
    column that is not here cannot be added to a state."""

    @property
    def is_broadcast(self) -> bool:
        """Whether all subtasks have the same rows: one writes them, and all read them back."""
        return not self.keys


@dataclass(frozen=True, slots=True)
class Increment:
    """A checkpoint that later ones may build on."""

    id: int
    base: int
    """The complete checkpoint that this one may build on; 0: none."""


class FrozenState(ABC):
    """A state as it was at a barrier. Immutable; may be read from any thread."""

    descriptor: StateDescriptor
    is_base: bool = False
    """Whether later checkpoints may build on this one: its file then outlives its snapshot."""

    def as_base(self, is_base: bool) -> Self:
        """Say whether later checkpoints may build on this."""
        self.is_base = is_base
        return self

    @abstractmethod
    def table(self) -> pl.DataFrame:
        """The canonical table, whole. Called off the subtask's thread; this or `tables`, once."""

    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table in parts, each of which fits into memory. Together they are sorted,
        unless one key group does not fit; but for timers and waiting rows that are larger than
        memory: those come part by part in order of time, each part sorted.
        """
        yield self.table()


@dataclass(frozen=True, slots=True)
class FrozenChanges:
    """What a state at a barrier has in place of what it had at an earlier one.

    The table of the earlier checkpoint without the rows that are named here, and with `rows`. Named
    are those that agree with a row of `removed` in all columns of `by`, or with one of `rows` if it
    `replaces`; and those whose slice_end or event_time is `dropped` or less. Immutable; may be read
    from any thread.
    """

    descriptor: StateDescriptor
    since: int
    """The checkpoint, complete, that these are the changes to."""
    by: tuple[str, ...]
    """Some columns of the canonical table: those of `removed`. None of runs and rows that wait."""
    rows: Callable[[], Iterable[pl.DataFrame]]
    """Rows of the canonical table in parts, sorted as `FrozenState.tables` is. Called once."""
    removed: Callable[[], Iterable[pl.DataFrame]] = tuple
    """Of the columns `by`: what is gone, in parts. Called once, after `rows`."""
    replaces: bool = True
    """False when `rows` stand behind those that were there."""
    dropped: int | None = None


Frozen = FrozenState | FrozenChanges


class StateBackend(ABC):
    """All keyed states of one operator subtask. Owned by one thread."""

    key_groups: KeyGroupRange

    @abstractmethod
    def state(self, descriptor: StateDescriptor) -> object:
        """The handle of a state: the same object each time it is asked for."""

    @abstractmethod
    def freeze(self) -> Sequence[FrozenState]:
        """References to every state as it is now, by name; the flow waits for this only."""

    def freeze_increment(self, increment: Increment) -> Sequence[Frozen]:
        """The same, of large states only what has changed since the base. See `changes.py`.

        `freeze` between two increments changes nothing for them.
        """
        return self.freeze()

    @abstractmethod
    def restore(self, descriptor: StateDescriptor, table: pl.DataFrame) -> None:
        """Add rows of a canonical table whose key groups are ours. Before any `state` call.

        A table may come in parts, cut anywhere, in their order.
        """

    def close(self) -> None:
        """Release files."""
        return
