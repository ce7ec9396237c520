"""What one state has for the keys of one turn, and how values are kept in it.

    backend --get_many--> Cells --item--> Items.unwrap --> value
    value --> Items.wrap --item--> Cells --put_many--> backend

Shapes   an item is what the backend keeps of one value: the value, or with a TTL (value, written).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from engine.elements import MIN_TIME, Micros
from engine.errors import FunctionError
from engine.functions.ttl import TimeDomain, Ttl
from engine.state.handles import DELETED, Key, ValueHandle
from engine.state.values import UNFIT, stored_value, storing

ABSENT: Any = object()
"""What a key has that has nothing: not None, which may be a value."""


@dataclass(slots=True)
class Current:
    """The key and the time of the row that is being processed; shared by all states."""

    slot: int = 0
    """Which of the turn's keys it is."""
    event_time: Micros = MIN_TIME
    processing_time: Micros = MIN_TIME


class Cells:
    """What one state has for the keys of one turn: a list, as a slot is found faster than a key."""

    __slots__ = ("_changed", "_handle", "_keys", "current", "values")

    def __init__(
        self,
        handle: ValueHandle,
        keys: Sequence[Key],
        current: Current,
        stored: Sequence[Key] | None = None,
    ) -> None:
        """`keys`: all different; a slot is a place in them. `stored`: those to look for, or all."""
        self._handle = handle
        self._keys = keys
        self.current = current
        found = handle.get_many(keys if stored is None else stored)
        self.values = [found.get(key, ABSENT) for key in keys]
        """By slot; ABSENT for a key that has nothing."""
        self._changed: set[int] = set()

    def get(self) -> Any:
        """What the current key has, or ABSENT."""
        return self.values[self.current.slot]

    def put(self, value: Any) -> None:
        """Set what the current key has; ABSENT leaves it with nothing."""
        slot = self.current.slot
        self.values[slot] = value
        self._changed.add(slot)

    def delete(self) -> None:
        """Leave the current key with nothing."""
        self.put(ABSENT)

    @property
    def is_changed(self) -> bool:
        """Whether the current key has something that was made in this turn."""
        return self.current.slot in self._changed and self.get() is not ABSENT

    def write_back(self) -> Mapping[Key, Any]:
        """Hand the changes to the backend, and tell them."""
        changes = {self._keys[slot]: self._left(slot) for slot in sorted(self._changed)}
        if changes:
            self._handle.put_many(changes)
        return changes

    def _left(self, slot: int) -> Any:
        value = self.values[slot]
        return DELETED if value is ABSENT else value


class Items:
    """Values to items and back, for a state without a TTL."""

    def __init__(self, name: str, types: tuple[pl.DataType, ...]) -> None:
        self._name = name
        self._types = types
        self._store = storing(types[0])
        self._is_single = len(types) == 1

    def wrap(self, value: Any) -> Any:
        """The item of a value, as a snapshot would give it back. Raises FunctionError."""
        if self._is_single:
            try:
                return self._store(value)
            except UNFIT as error:
                raise self._misfit(value, self._types[0]) from error
        if not isinstance(value, tuple) or len(value) != len(self._types):
            msg = (
                f"state {self._name!r} holds {len(self._types)} columns: got {value!r}; "
                "give a tuple of one value each"
            )
            raise FunctionError(msg)
        return tuple(map(self.stored, value, self._types))

    def stored(self, value: Any, dtype: pl.DataType) -> Any:
        """One value, of the type that the state has."""
        try:
            return stored_value(value, dtype)
        except UNFIT as error:
            raise self._misfit(value, dtype) from error

    def _misfit(self, value: Any, dtype: pl.DataType) -> FunctionError:
        msg = f"state {self._name!r} holds {dtype}: got {value!r}; convert it first"
        return FunctionError(msg)

    def unwrap(self, item: Any) -> Any:
        """The value of an item, or ABSENT."""
        return item

    def refreshed(self, item: Any) -> Any:
        """The item after it was read."""
        return item


class ExpiringItems(Items):
    """Values to items and back, for a state with a TTL."""

    def __init__(
        self, name: str, types: tuple[pl.DataType, ...], ttl: Ttl, current: Current
    ) -> None:
        super().__init__(name, types)
        self._ttl = ttl
        self.current = current

    def wrap(self, value: Any) -> Any:
        """The item of a value, written now."""
        item = super().wrap(value)
        return (*item, self._now) if len(self._types) > 1 else (item, self._now)

    def unwrap(self, item: Any) -> Any:
        """The value of an item, or ABSENT when its time is over."""
        if item is ABSENT or self._now >= item[-1] + self._ttl.after:
            return ABSENT
        return item[:-1] if len(self._types) > 1 else item[0]

    def refreshed(self, item: Any) -> Any:
        """The item after it was read: as if written now, when reads count."""
        if not self._ttl.refresh_on_read or item[-1] >= self._now:
            return item
        return (*item[:-1], self._now)

    @property
    def _now(self) -> Micros:
        if self._ttl.domain is TimeDomain.EVENT_TIME:
            return self.current.event_time
        return self.current.processing_time
