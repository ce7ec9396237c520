"""Handles of keyed state: what an operator reads and writes, the same for every backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from engine.elements import KEY_GROUP, Micros

Key = tuple[Any, ...]
"""The key group, then one Python object per key column."""

Span = tuple[int, int]
"""Key groups [lo, hi)."""

Merge = Callable[[pl.DataFrame, Sequence[str], Sequence[str]], pl.DataFrame]
"""Combines the rows of a frame that agree in some columns, and therefore in some others too."""


class Agenda(ABC):
    """Times at which to look at keys."""

    @abstractmethod
    def note(self, key: Key, time: Micros) -> None:
        """Look at a key at some time from now on that is not much later than `time`, at least once.

        A key that is noted for an earlier time may be given then, and only then.
        """

    @abstractmethod
    def first(self) -> Micros:
        """When the first key has to be looked at; MAX_TIME for never."""

    @abstractmethod
    def take(self, time: Micros, limit: int) -> list[Key]:
        """Take keys whose time has come, some `limit` of them; none when there are no more."""


class ValueHandle(ABC):
    """What each key has. A key that has nothing is absent.

    Shapes   an item is the value of the one payload column, or a tuple when there are several. A
             VALUE state has an item per key, a LIST a list of items, a MAP a dict of items. Lists
             and dicts that went in or came out are not changed by either side.
    """

    @abstractmethod
    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """The values of those keys that have one."""

    @abstractmethod
    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set values; `DELETED` removes the key's value."""

    @abstractmethod
    def items(self) -> Iterator[tuple[Key, Any]]:
        """Everything, in no particular order; nothing may be put meanwhile."""

    @abstractmethod
    def agenda(self, grain: int) -> Agenda:
        """A new agenda for the keys of this state; `grain`: how late it may be, µs."""


class _Deleted:
    def __repr__(self) -> str:
        return "DELETED"


DELETED = _Deleted()
"""Put in place of a value to remove it."""


class TimersHandle(ABC):
    """A set of (time, key), in order of time, then key."""

    @abstractmethod
    def add(self, time: Micros, key: Key) -> None:
        """Add a timer; one that is there already stays one."""

    @abstractmethod
    def remove(self, time: Micros, key: Key) -> None:
        """Remove a timer, if it is there."""

    @abstractmethod
    def holds(self, time: Micros, key: Key) -> bool:
        """Whether there is such a timer."""

    @abstractmethod
    def first(self) -> tuple[Micros, Key] | None:
        """The earliest timer; None when there is none."""

    @abstractmethod
    def due(self, time: Micros, limit: int | None = None) -> list[tuple[Micros, Key]]:
        """All timers up to `time`, or the first `limit` of them, in order. They stay."""


class RowsHandle(ABC):
    """Rows that wait for event time."""

    @abstractmethod
    def append(self, rows: pl.DataFrame) -> None:
        """Add rows (key_group, keys…, event_time, values…)."""

    @abstractmethod
    def take_before(self, time: Micros) -> pl.DataFrame | None:
        """Remove the rows with event_time < time: in order of event time and keys, and as they came
        within both; None when there are none.
        """

    def reach(self, time: Micros) -> Micros:
        """The last time up to `time` before which the rows fit into memory: take them in steps."""
        return time

    def take(self, time: Micros) -> Sequence[pl.DataFrame]:
        """Remove the rows with event_time < time, for who does not need them in order."""
        rows = self.take_before(time)
        return [] if rows is None else [rows]


class HeldHandle(ABC):
    """Rows that stay until others are put in their place."""

    @abstractmethod
    def frames(self) -> Sequence[pl.DataFrame]:
        """The rows (key_group, keys…, event_time, values…): as given, after a restore sorted."""

    @abstractmethod
    def hold(self, frames: Sequence[pl.DataFrame]) -> None:
        """Hold these rows, and no others."""

    @abstractmethod
    def append(self, rows: pl.DataFrame) -> None:
        """Hold some rows more."""


class FramesHandle(ABC):
    """Many rows per key, in the order in which they were added, as frames of the value columns."""

    @abstractmethod
    def get_many(self, keys: Iterable[Key]) -> dict[Key, Sequence[pl.DataFrame]]:
        """The frames of those keys that have rows, in order."""

    @abstractmethod
    def append_many(self, rows: Mapping[Key, Sequence[pl.DataFrame]]) -> None:
        """Add frames behind those that keys have; empty ones are ignored."""

    @abstractmethod
    def remove_many(self, keys: Iterable[Key]) -> None:
        """Forget the rows of keys."""


class RunsHandle(ABC):
    """Immutable runs of partials: rows (key_group, keys…, slice_end, values…) per slice."""

    merge: Merge | None = None
    """How partials combine; None until it is said."""

    def merge_with(self, merge: Merge) -> None:
        """Say how partials combine. Called once, before anything else."""
        self.merge = merge

    @abstractmethod
    def append(self, run: pl.DataFrame) -> None:
        """Add partials of any keys and slices."""

    @abstractmethod
    def take_until(self, time: Micros) -> pl.DataFrame | None:
        """Remove all slices with slice_end <= time; their merged rows, or None for none."""

    def take_parts(self, time: Micros) -> Iterator[pl.DataFrame]:
        """The same in parts that fit into memory: each some whole slices, in order; or, of a slice
        that is too large, the keys of some key groups.
        """
        ripe = self.take_until(time)
        if ripe is not None:
            yield ripe

    @abstractmethod
    def slice_ends(self) -> Sequence[int]:
        """The ends of all slices that hold something, in order."""

    @abstractmethod
    def read(self, after: int, until: int) -> Sequence[pl.DataFrame]:
        """The runs of slices with after < slice_end <= until, which stay; not merged."""

    def spans(self, after: int, until: int) -> Sequence[Span]:
        """When the runs of these slices are too large to be read together: spans of key groups that
        are not. No spans when they fit.
        """
        return ()

    def read_span(self, after: int, until: int, span: Span) -> Sequence[pl.DataFrame]:
        """What `read` gives, of a span of key groups."""
        group = pl.col(KEY_GROUP)
        ours = (group >= span[0]) & (group < span[1])
        return [run.filter(ours) for run in self.read(after, until)]

    @abstractmethod
    def drop_until(self, time: int) -> None:
        """Remove all slices with slice_end <= time."""
