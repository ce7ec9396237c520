"""The RocksDB backend: all keyed state of one operator subtask on disk, larger than memory.

    values.py   what keys have           an entry per key
    maps.py     maps of keys             an entry per key, or per map key of a large map
    runs.py     partials of windows      blocks of columns, by slice and key group
    rows.py     rows that wait           blocks of columns, by event time
    timers.py   timers                   an entry each, by time
    frames.py   rows that keys keep      pieces of columns, by key

Guarantee  canonical tables are those of the memory backend: a job may change its backend at any
           restore. The folder holds nothing that must survive: it dies with its process.
Cost     memory stays within the budget of `budget.py`. Freezing takes a view of the database and
         references to what is in memory: no row is read or written for it. What joins hold is in
         memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from engine.keygroups import KeyGroupRange
from engine.state.budget import Budget
from engine.state.changes import LayerPolicy
from engine.state.contract import (
    Frozen,
    FrozenState,
    Increment,
    StateBackend,
    StateDescriptor,
    StateKind,
)
from engine.state.held import MemoryHeld
from engine.state.memory import check_described_once, owned_rows
from engine.state.rocks.frames import RocksFrames
from engine.state.rocks.maps import RocksMaps
from engine.state.rocks.memory import ColumnMemory
from engine.state.rocks.place import Place
from engine.state.rocks.rows import RocksRows
from engine.state.rocks.runs import RocksRuns
from engine.state.rocks.store import Store
from engine.state.rocks.timers import RocksTimers
from engine.state.rocks.values import RocksValues

_Handle = RocksValues | RocksRuns | RocksTimers | RocksRows | RocksFrames | MemoryHeld


class RocksBackend(StateBackend):
    """All states of one operator subtask."""

    def __init__(
        self,
        key_groups: KeyGroupRange,
        folder: Path | None = None,
        budget: Budget | None = None,
        policy: LayerPolicy | None = None,
    ) -> None:
        """`folder`: where its own folder is made; the system's folder for temporary files.
        `policy`: when its checkpoints are layers on earlier ones.

        Raises ConfigError, StateError.
        """
        self.key_groups = key_groups
        self._budget = Budget() if budget is None else budget
        policy = LayerPolicy() if policy is None else policy
        self._layers = replace(policy, max_bytes=self._budget.changes_bytes)
        self._memory = ColumnMemory(self._budget.columns_bytes)
        self._store = Store(folder, self._budget)
        self._states: dict[str, _Handle] = {}

    @property
    def memory_bytes(self) -> int:
        """What it holds in memory now: columns, write buffers, block cache."""
        return self._memory.held_bytes + self._store.memory_bytes

    def state(self, descriptor: StateDescriptor) -> _Handle:
        """The handle of a state."""
        known = self._states.get(descriptor.name)
        if known is None:
            known = self._states[descriptor.name] = self._new(descriptor)
        else:
            check_described_once(descriptor, known.descriptor)
        return known

    def _new(self, descriptor: StateDescriptor) -> _Handle:
        prefix = len(self._states).to_bytes(2, "big")
        groups = self.key_groups.lo, self.key_groups.hi
        place = Place(prefix, self._store, self._memory, self._budget, groups, self._layers)
        match descriptor.kind:
            case StateKind.RUNS:
                return RocksRuns(descriptor, place)
            case StateKind.TIMERS:
                return RocksTimers(descriptor, place)
            case StateKind.ROWS:
                return RocksRows(descriptor, place)
            case StateKind.MAP:
                return RocksMaps(descriptor, place)
            case StateKind.FRAMES:
                return RocksFrames(descriptor, place)
            case StateKind.HELD:
                return MemoryHeld(descriptor)
            case _:
                return RocksValues(descriptor, place)

    def freeze(self) -> Sequence[FrozenState]:
        """References to what is in memory, and views of the database."""
        return [self._states[name].freeze() for name in sorted(self._states)]

    def freeze_increment(self, increment: Increment) -> Sequence[Frozen]:
        """The same, of large states only what has changed."""
        return [self._frozen(self._states[name], increment) for name in sorted(self._states)]

    def _frozen(self, handle: _Handle, increment: Increment) -> Frozen:
        # The one is laid out anew all the time, the other is small.
        if isinstance(handle, MemoryHeld) or handle.descriptor.is_broadcast:
            return handle.freeze()
        return handle.freeze_increment(increment)

    def restore(self, descriptor: StateDescriptor, table: pl.DataFrame) -> None:
        """Add the rows of a canonical table whose key groups are ours."""
        ours = owned_rows(descriptor, table, self.key_groups)
        handle = self.state(descriptor)
        if isinstance(handle, RocksValues | RocksTimers | RocksFrames):
            handle.load(ours)
        else:
            handle.append(ours)

    def close(self) -> None:
        """Close the database; a snapshot that is being written keeps the files it needs."""
        self._store.close()
