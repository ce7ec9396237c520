"""Record functions with keyed state: what a job's author writes when columns are not enough.

    class Amplifier(hw.CoProcessFunction):
        factor = hw.ValueState(float, default=1.0)
        def process_left(self, reading, ctx):
            yield reading | {"value": reading["value"] * self.factor.get()}
        def process_right(self, control, ctx):
            self.factor.set(control["factor"])

Shapes     rows are dicts; a method yields (or returns a list of) rows, or nothing.
Guarantee  states are those of the row's key and are in every snapshot. Other attributes are
           settings: what a method puts there may be lost at any time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import polars as pl

from engine.elements import Micros
from engine.errors import FunctionError, InternalError
from engine.state.handles import DELETED, Key, ValueHandle
from engine.state.schema import TypeLike, as_type
from engine.state.values import check_value_type, stored_value

T = TypeVar("T")
F = TypeVar("F", bound="StatefulFunction")

Row = dict[str, Any]
Rows = Iterable[Row] | None


class ValueState(Generic[T]):
    """One value per key; declared as a class attribute of a function.

    >>> class Total(KeyedProcessFunction):
    ...     total = ValueState(int, default=0)
    ...     def process(self, row, ctx):
    ...         self.total.set(self.total.get() + row["amount"])
    ...         yield row | {"total": self.total.get()}
    >>> states_of(Total())["total"]
    ValueState(Int64, default=0)
    """

    @overload
    def __init__(self: ValueState[T], type_: type[T], *, default: T) -> None: ...
    @overload
    def __init__(self: ValueState[T | None], type_: type[T], *, default: None = None) -> None: ...
    @overload
    def __init__(self: ValueState[Any], type_: TypeLike, *, default: object = None) -> None: ...
    def __init__(self, type_: TypeLike, *, default: Any = None) -> None:
        self.dtype = check_value_type(as_type(type_))
        self.default = stored_value(default, self.dtype)

    def get(self) -> T:
        """The value of the current key, or the default."""
        raise InternalError(_unbound(self))

    def set(self, value: T) -> None:
        """Set the value of the current key."""
        raise InternalError(_unbound(self))

    def clear(self) -> None:
        """Forget the value of the current key."""
        raise InternalError(_unbound(self))

    def __repr__(self) -> str:
        return f"ValueState({self.dtype}, default={self.default!r})"


def _unbound(state: ValueState[Any]) -> str:
    return f"{state!r} was used outside of a row; use states in process methods only"


@dataclass(slots=True)
class CurrentKey:
    """The key whose row is being processed; shared by all states of a function."""

    key: Key = ()


class BoundValueState(ValueState[T]):
    """A value state during one batch: read from the values fetched before it, written after it."""

    def __init__(
        self,
        name: str,
        declared: ValueState[T],
        handle: ValueHandle,
        keys: Iterable[Key],
        current: CurrentKey,
    ) -> None:
        self.dtype, self.default = declared.dtype, declared.default
        self._name = name
        self._handle = handle
        self._current = current
        self._values: dict[Key, Any] = handle.get_many(keys)
        self._changes: dict[Key, Any] = {}

    def get(self) -> T:
        """The value of the current key, or the default."""
        value: T = self._values.get(self._current.key, self.default)
        return value

    def set(self, value: T) -> None:
        """Set the value of the current key."""
        try:
            stored = stored_value(value, self.dtype)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
            msg = f"state {self._name!r} holds {self.dtype}: got {value!r}; convert it before set()"
            raise FunctionError(msg) from error
        self._values[self._current.key] = self._changes[self._current.key] = stored

    def clear(self) -> None:
        """Forget the value of the current key."""
        self._values.pop(self._current.key, None)
        self._changes[self._current.key] = DELETED

    def write_back(self) -> None:
        """Hand the changes of the batch to the backend."""
        self._handle.put_many(self._changes)


@dataclass(slots=True)
class FunctionContext:
    """What a record function sees besides its row."""

    watermark: Micros
    """No later row in time has an event time before this."""
    key: tuple[Any, ...] = ()
    """The values of the key columns."""
    event_time: Micros | None = None
    """The event time of the row; None on a stream without event time."""


class StatefulFunction(ABC):  # noqa: B024  nothing is abstract here, and none is made of it
    """Root of the functions that run on keyed streams."""


class KeyedProcessFunction(StatefulFunction):
    """Processes the rows of one keyed stream."""

    @abstractmethod
    def process(self, row: Row, ctx: FunctionContext) -> Rows:
        """Take one row."""


class CoProcessFunction(StatefulFunction):
    """Processes the rows of two streams that are keyed alike, with shared state."""

    @abstractmethod
    def process_left(self, row: Row, ctx: FunctionContext) -> Rows:
        """Take one row of the first stream."""

    @abstractmethod
    def process_right(self, row: Row, ctx: FunctionContext) -> Rows:
        """Take one row of the second stream."""


def states_of(function: StatefulFunction) -> Mapping[str, ValueState[Any]]:
    """The states that a function declares, by attribute name, sorted."""
    found = {
        name: value
        for owner in reversed(type(function).__mro__)
        for name, value in vars(owner).items()
        if isinstance(value, ValueState)
    }
    return dict(sorted(found.items()))


def bound(function: F, states: Mapping[str, BoundValueState[Any]]) -> F:
    """A copy of the function whose states work."""
    instance = copy(function)
    for name, state in states.items():
        setattr(instance, name, state)
    return instance
