"""States while a function runs: each reads and writes the cells of the current key.

    Cells --items--> BoundValueState, BoundListState, … --items--> Cells

Guarantee  lists and dicts of items are copied at the first change, so that a frozen state is never
           touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from engine.errors import FunctionError
from engine.functions.cells import ABSENT, Cells, Current, ExpiringItems, Items
from engine.functions.states import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    State,
    ValueState,
)
from engine.state.contract import VALUE

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class BoundValueState(ValueState[T]):
    """A value state during one turn."""

    def __init__(self, declared: ValueState[T], cells: Cells, items: Items) -> None:
        self.default = declared.default
        self._cells = cells
        self._items = items

    def get(self) -> T:
        """The value of the current key, or the default."""
        value: T = _read(self._cells, self._items, self.default)
        return value

    def set(self, value: T) -> None:
        """Set the value of the current key."""
        self._cells.put(self._items.wrap(value))

    def clear(self) -> None:
        """Forget the value of the current key."""
        self._cells.delete()


class BoundPlainValueState(BoundValueState[T]):
    """A value state without a TTL: what most functions have, so it goes to the cells directly."""

    def __init__(self, declared: ValueState[T], cells: Cells, items: Items) -> None:
        super().__init__(declared, cells, items)
        self._values = cells.values
        self._current = cells.current

    def get(self) -> T:
        """The value of the current key, or the default."""
        value = self._values[self._current.slot]
        own: T = self.default if value is ABSENT else value
        return own


class BoundReducingState(ReducingState[T]):
    """A reducing state during one turn."""

    def __init__(self, declared: ReducingState[T], cells: Cells, items: Items) -> None:
        self.reduce = declared.reduce
        self._cells = cells
        self._items = items

    def get(self) -> T | None:
        """The value so far."""
        value: T | None = _read(self._cells, self._items, None)
        return value

    def add(self, value: T) -> None:
        """Fold a value in."""
        before = self._items.unwrap(self._cells.get())
        self._cells.put(self._items.wrap(value if before is ABSENT else self.reduce(before, value)))

    def clear(self) -> None:
        """Forget the value of the current key."""
        self._cells.delete()


class BoundAggregatingState(AggregatingState[V, R]):
    """An aggregating state during one turn."""

    def __init__(self, declared: AggregatingState[V, R], cells: Cells, items: Items) -> None:
        self.function = declared.function
        self._cells = cells
        self._items = items

    def get(self) -> R | None:
        """The result so far."""
        accumulator = _read(self._cells, self._items, ABSENT)
        return None if accumulator is ABSENT else self.function.result(accumulator)

    def add(self, value: V) -> None:
        """Fold a value in."""
        accumulator = self._items.unwrap(self._cells.get())
        if accumulator is ABSENT:
            accumulator = self.function.create()
        self._cells.put(self._items.wrap(self.function.add(value, accumulator)))

    def clear(self) -> None:
        """Forget the accumulator of the current key."""
        self._cells.delete()


class BoundListState(ListState[T]):
    """A list state during one turn."""

    def __init__(self, declared: ListState[T], cells: Cells, items: Items) -> None:
        self.payload = declared.payload
        self._cells = cells
        self._items = items

    def get(self) -> list[T]:
        """A copy of the list of the current key."""
        given = self._cells.get()
        if given is ABSENT:
            return []
        alive = [item for item in given if self._items.unwrap(item) is not ABSENT]
        refreshed = [self._items.refreshed(item) for item in alive]
        if refreshed != given:
            self._replace(refreshed)
        return [self._items.unwrap(item) for item in alive]

    def add(self, value: T) -> None:
        """Add a value at the end."""
        self._own().append(self._items.wrap(value))

    def add_all(self, values: Iterable[T]) -> None:
        """Add values at the end."""
        wrapped = [self._items.wrap(value) for value in values]
        if wrapped:
            self._own().extend(wrapped)

    def update(self, values: Iterable[T]) -> None:
        """Put other values in place of all."""
        self._replace([self._items.wrap(value) for value in values])

    def clear(self) -> None:
        """Forget the list of the current key."""
        self._cells.delete()

    def _replace(self, items: list[Any]) -> None:
        if items:
            self._cells.put(items)
        else:
            self._cells.delete()

    def _own(self) -> list[Any]:
        """The list of the current key, made to be changed."""
        given = self._cells.get()
        if not self._cells.is_changed:
            given = [] if given is ABSENT else list(given)
            self._cells.put(given)
        own: list[Any] = given
        return own


class BoundMapState(MapState[K, V]):
    """A map state during one turn."""

    def __init__(self, declared: MapState[K, V], cells: Cells, items: Items) -> None:
        self.key_type = declared.key_type
        self.payload = declared.payload
        self._cells = cells
        self._items = items

    def get(self, key: K, default: V | None = None) -> V | None:  # type: ignore[override]
        """The value of an entry, or the default."""
        at = self._key(key)
        item = self._all().get(at, ABSENT)
        value: Any = self._items.unwrap(item)
        if value is ABSENT:
            return default
        refreshed = self._items.refreshed(item)
        if refreshed is not item:
            self._own()[at] = refreshed
        found: V = value
        return found

    def put(self, key: K, value: V) -> None:
        """Set the value of an entry."""
        at, item = self._key(key), self._items.wrap(value)
        self._own()[at] = item

    def remove(self, key: K) -> None:
        """Remove an entry, if it is there."""
        at = self._key(key)
        if at in self._all():
            own = self._own()
            del own[at]
            if not own:
                self._cells.delete()

    def items(self) -> list[tuple[K, V]]:
        """All entries, sorted by key."""
        every = self._all()
        alive = {key: item for key, item in every.items() if self._is_alive(item)}
        refreshed = {key: self._items.refreshed(item) for key, item in alive.items()}
        if refreshed != every:
            if refreshed:
                self._cells.put(refreshed)
            else:
                self._cells.delete()
        return [(key, self._items.unwrap(alive[key])) for key in sorted(alive)]

    def clear(self) -> None:
        """Forget all entries of the current key."""
        self._cells.delete()

    def __contains__(self, key: K) -> bool:
        return self._is_alive(self._all().get(self._key(key), ABSENT))

    def _is_alive(self, item: Any) -> bool:
        return self._items.unwrap(item) is not ABSENT

    def _key(self, key: Any) -> Any:
        at = self._items.stored(key, self.key_type)
        if at is None:
            msg = "map state cannot have the key None; use a value of its own for what is unknown"
            raise FunctionError(msg)
        return at

    def _all(self) -> dict[Any, Any]:
        given = self._cells.get()
        return {} if given is ABSENT else given

    def _own(self) -> dict[Any, Any]:
        """The entries of the current key, made to be changed."""
        given = self._all()
        if not self._cells.is_changed:
            given = given.copy()
            self._cells.put(given)
        return given


class BoundBroadcastState(BoundMapState[K, V]):
    """A broadcast state during one turn: read by all rows, written by broadcast rows only."""

    def __init__(
        self, declared: MapState[K, V], cells: Cells, items: Items, *, writable: bool
    ) -> None:
        super().__init__(declared, cells, items)
        self._writable = writable

    def put(self, key: K, value: V) -> None:
        """Set the value of an entry."""
        self._check_writable()
        super().put(key, value)

    def remove(self, key: K) -> None:
        """Remove an entry, if it is there."""
        self._check_writable()
        super().remove(key)

    def clear(self) -> None:
        """Forget all entries."""
        self._check_writable()
        super().clear()

    def _check_writable(self) -> None:
        if not self._writable:
            msg = (
                f"{self!r} was written while a keyed row was processed, which only one subtask "
                "sees; write it in process_broadcast"
            )
            raise FunctionError(msg)

    def __repr__(self) -> str:
        return f"BroadcastState({self.key_type}, {self.payload[VALUE]})"


def bind_broadcast(name: str, declared: State, cells: Cells, *, writable: bool) -> State:
    """The broadcast state that a function works with during one turn."""
    assert isinstance(declared, MapState)
    items = Items(name, tuple(declared.payload.values()))
    return BoundBroadcastState(declared, cells, items, writable=writable)


def bind(name: str, declared: State, cells: Cells, current: Current) -> State:
    """The state that a function works with during one turn."""
    types = tuple(declared.payload.values())
    ttl = declared.ttl
    items = Items(name, types) if ttl is None else ExpiringItems(name, types, ttl, current)
    match declared:
        case ValueState() if ttl is None:
            return BoundPlainValueState(declared, cells, items)
        case ValueState():
            return BoundValueState(declared, cells, items)
        case ReducingState():
            return BoundReducingState(declared, cells, items)
        case AggregatingState():
            return BoundAggregatingState(declared, cells, items)
        case ListState():
            return BoundListState(declared, cells, items)
        case MapState():
            return BoundMapState(declared, cells, items)
    msg = f"state {name!r} is of an unknown kind: {declared!r}"
    raise TypeError(msg)


def _read(cells: Cells, items: Items, default: Any) -> Any:
    item = cells.get()
    value = items.unwrap(item)
    if value is ABSENT:
        return default
    refreshed = items.refreshed(item)
    if refreshed is not item:
        cells.put(refreshed)
    return value
