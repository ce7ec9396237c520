"""States of functions: declared as class attributes, used inside of the function's methods.

    class Sessions(hw.KeyedProcessFunction):
        last = hw.ValueState(int)                          one value
        pages = hw.ListState(str)                          many values, in order
        visits = hw.MapState(str, int)                     values by a second key
        longest = hw.ReducingState(int, max)               all values folded into one
        mean = hw.AggregatingState(Mean())                 … of another type

Guarantee  each state is that of the current key, and is in every snapshot.
Shapes   a value is a number, text, a boolean or a time; what a state gives has the type that it was
         declared with. Lists and maps that a state gives are copies. Maps are in order of their
         keys.
Cost     a state is read and written once per key and batch, a list as a whole; a map too, unless it
         is large and on disk: then entry by entry, but as a whole by `items` and with a TTL.
Errors   GraphError where a state is declared, FunctionError at the row that a value does not fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar, overload

import polars as pl

from engine.errors import GraphError, InternalError
from engine.functions.ttl import Ttl, TtlLike, as_ttl
from engine.keygroups import may_be_key
from engine.state.contract import INDEX, MAP_KEY, VALUE, StateKind
from engine.state.schema import TypeLike, as_type
from engine.state.values import UNFIT, check_value_type, stored_value

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
R = TypeVar("R")

WRITTEN = "written"
"""Column of a state with a TTL: when an item was last written, µs."""


class State:
    """Root of all states that a function declares."""

    kind: ClassVar[StateKind]

    def __init__(self, payload: Mapping[str, TypeLike], ttl: TtlLike | None) -> None:
        self.payload = {name: check_value_type(as_type(type_)) for name, type_ in payload.items()}
        """Columns of one item."""
        self.ttl: Ttl | None = as_ttl(ttl)

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """Value columns of the canonical table."""
        written = {} if self.ttl is None else {WRITTEN: pl.Int64()}
        return {**self._second_key(), **self.payload, **written}

    def _second_key(self) -> dict[str, pl.DataType]:
        return {}

    def clear(self) -> None:
        """Forget everything of the current key."""
        raise self._unbound()

    def _unbound(self) -> InternalError:
        msg = f"{self!r} was used outside of a row; use states in process methods only"
        return InternalError(msg)


class ValueState(State, Generic[T]):
    """One value per key.

    >>> from engine.functions import KeyedProcessFunction, states_of
    >>> class Total(KeyedProcessFunction):
    ...     total = ValueState(int, default=0)
    ...     def process(self, row, ctx):
    ...         self.total.set(self.total.get() + row["amount"])
    ...         yield row | {"total": self.total.get()}
    >>> states_of(Total())["total"]
    ValueState(Int64, default=0)
    """

    kind = StateKind.VALUE

    @overload
    def __init__(
        self: ValueState[T], type_: type[T], *, default: T, ttl: TtlLike | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[T | None],
        type_: type[T],
        *,
        default: None = None,
        ttl: TtlLike | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: ValueState[Any],
        type_: TypeLike,
        *,
        default: object = None,
        ttl: TtlLike | None = None,
    ) -> None: ...
    def __init__(self, type_: TypeLike, *, default: Any = None, ttl: TtlLike | None = None) -> None:
        super().__init__({VALUE: type_}, ttl)
        self.dtype = self.payload[VALUE]
        try:
            self.default = stored_value(default, self.dtype)
        except UNFIT as error:
            msg = f"default of a state of {self.dtype} does not fit: got {default!r}; convert it"
            raise GraphError(msg) from error

    def get(self) -> T:
        """The value of the current key, or the default."""
        raise self._unbound()

    def set(self, value: T) -> None:
        """Set the value of the current key."""
        raise self._unbound()

    def __repr__(self) -> str:
        return f"ValueState({self.dtype}, default={self.default!r})"


class ListState(State, Generic[T]):
    """Many values per key, in the order in which they were added.

    >>> ListState(str), ListState(float).columns
    (ListState(String), {'index': Int64, 'value': Float64})
    """

    kind = StateKind.LIST

    @overload
    def __init__(self: ListState[T], type_: type[T], *, ttl: TtlLike | None = None) -> None: ...
    @overload
    def __init__(self: ListState[Any], type_: TypeLike, *, ttl: TtlLike | None = None) -> None: ...
    def __init__(self, type_: TypeLike, *, ttl: TtlLike | None = None) -> None:
        """`ttl`: of each element by itself."""
        super().__init__({VALUE: type_}, ttl)

    def _second_key(self) -> dict[str, pl.DataType]:
        return {INDEX: pl.Int64()}

    def get(self) -> list[T]:
        """A copy of the list of the current key; empty when it has none."""
        raise self._unbound()

    def add(self, value: T) -> None:
        """Add a value at the end."""
        raise self._unbound()

    def add_all(self, values: Iterable[T]) -> None:
        """Add values at the end."""
        raise self._unbound()

    def update(self, values: Iterable[T]) -> None:
        """Put other values in place of all."""
        raise self._unbound()

    def __repr__(self) -> str:
        return f"ListState({self.payload[VALUE]})"


class MapState(State, Generic[K, V]):
    """Values per key, by a second key.

    >>> MapState(str, int), MapState(int, float).columns
    (MapState(String, Int64), {'map_key': Int64, 'value': Float64})
    """

    kind = StateKind.MAP

    @overload
    def __init__(
        self: MapState[K, V], keys: type[K], values: type[V], *, ttl: TtlLike | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: MapState[Any, Any], keys: TypeLike, values: TypeLike, *, ttl: TtlLike | None = None
    ) -> None: ...
    def __init__(self, keys: TypeLike, values: TypeLike, *, ttl: TtlLike | None = None) -> None:
        """`ttl`: of each entry by itself."""
        self.key_type = check_value_type(as_type(keys))
        if not may_be_key(self.key_type):
            msg = (
                f"map state cannot have keys of {self.key_type}; "
                "use integers, text, booleans or times"
            )
            raise GraphError(msg)
        super().__init__({VALUE: values}, ttl)

    def _second_key(self) -> dict[str, pl.DataType]:
        return {MAP_KEY: self.key_type}

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    def get(self, key: K, default: V | None = None) -> V | None:
        """The value of an entry, or the default."""
        raise self._unbound()

    def put(self, key: K, value: V) -> None:
        """Set the value of an entry."""
        raise self._unbound()

    def remove(self, key: K) -> None:
        """Remove an entry, if it is there."""
        raise self._unbound()

    def items(self) -> list[tuple[K, V]]:
        """All entries, sorted by key."""
        raise self._unbound()

    def keys(self) -> list[K]:
        """The keys of all entries, sorted."""
        return [key for key, _ in self.items()]

    def values(self) -> list[V]:
        """The values of all entries, sorted by key."""
        return [value for _, value in self.items()]

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return not self.items()

    def __contains__(self, key: K) -> bool:
        raise self._unbound()

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.items())

    def __repr__(self) -> str:
        return f"MapState({self.key_type}, {self.payload[VALUE]})"


class BroadcastState(MapState[K, V]):
    """Entries that all keys see and all subtasks have alike: what a broadcast stream says.

    >>> BroadcastState(str, float)
    BroadcastState(String, Float64)
    """

    @overload
    def __init__(self: BroadcastState[K, V], keys: type[K], values: type[V]) -> None: ...
    @overload
    def __init__(self: BroadcastState[Any, Any], keys: TypeLike, values: TypeLike) -> None: ...
    def __init__(self, keys: TypeLike, values: TypeLike) -> None:
        super().__init__(keys, values)

    def __repr__(self) -> str:
        return f"BroadcastState({self.key_type}, {self.payload[VALUE]})"


class ReducingState(State, Generic[T]):
    """All values of a key, folded into one as they are added.

    >>> ReducingState(int, max)
    ReducingState(Int64, max)
    """

    kind = StateKind.VALUE

    @overload
    def __init__(
        self: ReducingState[T],
        type_: type[T],
        reduce: Callable[[T, T], T],
        *,
        ttl: TtlLike | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: ReducingState[Any],
        type_: TypeLike,
        reduce: Callable[[Any, Any], Any],
        *,
        ttl: TtlLike | None = None,
    ) -> None: ...
    def __init__(
        self, type_: TypeLike, reduce: Callable[[Any, Any], Any], *, ttl: TtlLike | None = None
    ) -> None:
        """`reduce`: from the value so far and the one that is added to the new one."""
        super().__init__({VALUE: type_}, ttl)
        if not callable(reduce):
            msg = f"reducing state needs a function of two values: got {reduce!r}; pass e.g. max"
            raise GraphError(msg)
        self.reduce = reduce

    def get(self) -> T | None:
        """The value so far; None before the first."""
        raise self._unbound()

    def add(self, value: T) -> None:
        """Fold a value in."""
        raise self._unbound()

    def __repr__(self) -> str:
        name = getattr(self.reduce, "__name__", type(self.reduce).__name__)
        return f"ReducingState({self.payload[VALUE]}, {name})"


class AggregateFunction(ABC, Generic[V, A, R]):
    """How an aggregating state takes values, and what it gives.

    >>> class Mean(AggregateFunction):
    ...     accumulator = {"n": int, "total": float}
    ...     def create(self):
    ...         return 0, 0.0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + 1, accumulator[1] + value
    ...     def result(self, accumulator):
    ...         return accumulator[1] / accumulator[0]
    """

    accumulator: ClassVar[Mapping[str, TypeLike]]
    """Columns of the accumulator, which is a tuple of so many values; of one, the value itself."""

    @abstractmethod
    def create(self) -> A:
        """The accumulator of a key that has nothing yet."""

    @abstractmethod
    def add(self, value: V, accumulator: A) -> A:
        """The accumulator with one more value."""

    @abstractmethod
    def result(self, accumulator: A) -> R:
        """What the state gives."""


class AggregatingState(State, Generic[V, R]):
    """All values of a key, folded into an accumulator as they are added."""

    kind = StateKind.VALUE

    def __init__(
        self, function: AggregateFunction[V, Any, R], *, ttl: TtlLike | None = None
    ) -> None:
        """`function`: creates, adds to and reads the accumulator."""
        columns = getattr(function, "accumulator", None)
        if not isinstance(function, AggregateFunction) or not columns or WRITTEN in columns:
            msg = (
                f"aggregating state needs an AggregateFunction whose `accumulator` names its "
                f"columns, none of them {WRITTEN!r}: got {function!r} with {columns!r}"
            )
            raise GraphError(msg)
        super().__init__(columns, ttl)
        self.function = function

    def get(self) -> R | None:
        """The result so far; None before the first value."""
        raise self._unbound()

    def add(self, value: V) -> None:
        """Fold a value in."""
        raise self._unbound()

    def __repr__(self) -> str:
        return f"AggregatingState({type(self.function).__name__})"
