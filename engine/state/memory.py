"""The memory backend: state as Python dicts and Polars frames of one operator subtask.

Cost     freezing values copies a dict of references, about 10 ms for a million keys, and nothing
         when they go as a layer; freezing runs copies one reference per run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from engine.elements import KEY_GROUP
from engine.errors import InternalError, RestoreError
from engine.keygroups import KeyGroupRange, rows_of
from engine.state.agenda import MemoryAgenda
from engine.state.changes import LastPuts, LayerPolicy, PutChanges
from engine.state.contract import (
    Frozen,
    FrozenChanges,
    FrozenState,
    Increment,
    StateBackend,
    StateDescriptor,
    StateKind,
)
from engine.state.frames import MemoryFrames
from engine.state.handles import DELETED, Agenda, Key, ValueHandle
from engine.state.held import MemoryHeld
from engine.state.runs import MemoryRuns
from engine.state.schema import table_schema, type_name
from engine.state.tables import continued, items_of, key_table, table_of
from engine.state.timers import MemoryTimers
from engine.state.waiting import MemoryRows


class MemoryValues(ValueHandle):
    """One value per key, in a dict."""

    def __init__(self, descriptor: StateDescriptor, policy: LayerPolicy | None = None) -> None:
        self._descriptor = descriptor
        self._values: dict[Key, Any] = {}
        self._changes: PutChanges[Key] = PutChanges(policy or LayerPolicy())

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """The values of those keys that have one."""
        values = self._values
        return {key: values[key] for key in keys if key in values}

    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set or remove values."""
        if self._changes.tracks:
            single = self._descriptor.kind is StateKind.VALUE
            # A key with an empty list or map has no row that would take the place of those it had.
            self._changes.note(
                values if single else {key: value or DELETED for key, value in values.items()}
            )
        for key, value in values.items():
            if value is DELETED:
                self._values.pop(key, None)
            else:
                self._values[key] = value

    def items(self) -> Iterator[tuple[Key, Any]]:
        """Everything."""
        return iter(self._values.items())

    def agenda(self, grain: int) -> Agenda:
        """An agenda in memory, which is never late."""
        return MemoryAgenda()

    def load(self, table: pl.DataFrame) -> None:
        """Add rows of a canonical table."""
        items = items_of(self._descriptor, table)
        if self._descriptor.kind is not StateKind.VALUE:
            # A part of a table may begin within a key.
            first = next(items, None)
            if first is not None:
                key, item = first
                self._values[key] = continued(self._values.get(key), item)
        self._values.update(items)

    def freeze(self) -> FrozenState:
        """References to all keys and values."""
        return FrozenValues(self._descriptor, self._values.copy())

    def freeze_increment(self, increment: Increment) -> Frozen:
        """References to the keys and values that have changed."""
        descriptor, changed = self._descriptor, self._changes.freeze(increment, len(self._values))
        if changed is None:
            return self.freeze().as_base(self._changes.tracks)
        puts = LastPuts(changed)
        return FrozenChanges(
            descriptor,
            since=increment.base,
            by=(KEY_GROUP, *descriptor.keys),
            rows=lambda: [table_of(descriptor, puts.items().items())],
            removed=lambda: [key_table(descriptor, puts.deleted())],
        )


class FrozenValues(FrozenState):
    """The values of one subtask as they were at a barrier."""

    def __init__(self, descriptor: StateDescriptor, values: Mapping[Key, Any]) -> None:
        self.descriptor = descriptor
        self._values = values

    def table(self) -> pl.DataFrame:
        """The canonical table, sorted by key group and keys."""
        return table_of(self.descriptor, self._values.items())


_Handle = MemoryValues | MemoryRuns | MemoryTimers | MemoryRows | MemoryFrames | MemoryHeld


class MemoryBackend(StateBackend):
    """All states of one operator subtask, in memory."""

    def __init__(self, key_groups: KeyGroupRange, policy: LayerPolicy | None = None) -> None:
        """`policy`: when its checkpoints are layers on earlier ones."""
        self.key_groups = key_groups
        self._policy = LayerPolicy() if policy is None else policy
        self._states: dict[str, tuple[StateDescriptor, _Handle]] = {}

    def state(self, descriptor: StateDescriptor) -> _Handle:
        """The handle of a state."""
        known = self._states.get(descriptor.name)
        if known is None:
            handle = self._empty(descriptor)
            self._states[descriptor.name] = descriptor, handle
            return handle
        check_described_once(descriptor, known[0])
        return known[1]

    def _empty(self, descriptor: StateDescriptor) -> _Handle:
        match descriptor.kind:
            case StateKind.RUNS:
                return MemoryRuns(descriptor, self._policy)
            case StateKind.TIMERS:
                return MemoryTimers(descriptor, self._policy)
            case StateKind.ROWS:
                return MemoryRows(descriptor, self._policy)
            case StateKind.FRAMES:
                return MemoryFrames(descriptor, self._policy)
            case StateKind.HELD:
                return MemoryHeld(descriptor)
            case _:
                return MemoryValues(descriptor, self._policy)

    def freeze(self) -> Sequence[FrozenState]:
        """References to every state as it is now."""
        return [self._states[name][1].freeze() for name in sorted(self._states)]

    def freeze_increment(self, increment: Increment) -> Sequence[Frozen]:
        """References to what has changed in large states, and to all of small ones."""
        return [self._frozen(name, increment) for name in sorted(self._states)]

    def _frozen(self, name: str, increment: Increment) -> Frozen:
        descriptor, handle = self._states[name]
        # What is the same everywhere is small; what joins hold is laid out anew all the time.
        if descriptor.is_broadcast or isinstance(handle, MemoryHeld):
            return handle.freeze()
        return handle.freeze_increment(increment)

    def restore(self, descriptor: StateDescriptor, table: pl.DataFrame) -> None:
        """Add the rows of a canonical table whose key groups are ours."""
        ours = owned_rows(descriptor, table, self.key_groups)
        handle = self.state(descriptor)
        if isinstance(handle, MemoryValues | MemoryTimers | MemoryFrames):
            handle.load(ours)
        else:
            handle.append(ours)


def check_described_once(descriptor: StateDescriptor, known: StateDescriptor) -> None:
    """Refuse a state that was asked for in another shape before. Raises InternalError."""
    if known is not descriptor and known != descriptor:
        msg = (
            f"state {descriptor.name!r} is asked for in two shapes: got {descriptor} "
            f"after {known}; one operator describes each of its states once"
        )
        raise InternalError(msg)


def owned_rows(
    descriptor: StateDescriptor, table: pl.DataFrame, ours: KeyGroupRange
) -> pl.DataFrame:
    """Our rows of a canonical table; all, of a broadcast state. Raises RestoreError."""
    _check_table(descriptor, table)
    if descriptor.is_broadcast:
        return table
    return rows_of(table, ours)


def _check_table(descriptor: StateDescriptor, table: pl.DataFrame) -> None:
    wanted, stored = table_schema(descriptor), dict(table.schema)
    if wanted != stored:
        msg = (
            f"state {descriptor.name!r} has another shape in the snapshot: "
            f"stored {_shape(stored)}, wanted {_shape(wanted)}; "
            "restore with the old columns and types, or give the operator a new uid"
        )
        raise RestoreError(msg)


def _shape(schema: Mapping[str, pl.DataType]) -> str:
    return "(" + ", ".join(f"{name}: {type_name(dtype)}" for name, dtype in schema.items()) + ")"
