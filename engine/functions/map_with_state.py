"""Map with state: one function of (state, row), for what needs no class.

    def count(state, row):
        n = state + 1
        return n, row | {"n": n}

    stream.key_by("user").map_with_state(count, initial_state=0, state_type=int, timeout="30m")

    known = pl.DataFrame({"user": ["ann"], "visits": [7]})
    stream.key_by("user").map_with_state(count, initial_state=known, state_type=int)

Order    with a timeout rows come in order of event time; after `timeout` without a row of a key its
         state is dropped, and `on_timeout(state, key)`, if given, says what is to be sent then.
Shapes   an initial state is that of every key, or a frame of the keys and one more column: what
         each of them starts with; the others start with None. It is a setting: a key that has had a
         row has a state of its own, which is in every snapshot, and never goes back to it.
Source   Spark's `mapWithState` with `StateSpec.initialState` and `timeout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

import polars as pl

from engine.elements import Micros
from engine.errors import FunctionError, GraphError
from engine.functions.context import FunctionContext
from engine.functions.process import KeyedProcessFunction
from engine.functions.states import ValueState
from engine.state.schema import TypeLike

Schema = Mapping[str, pl.DataType]

MapFunction = Callable[[Any, Any], tuple[Any, object]]
"""From a state and a row to the new state, and a row, several, or None."""

OnTimeout = Callable[[Any, tuple[Any, ...]], object]
"""From a state and the values of its key to a row, several, or None."""


class MapWithState(KeyedProcessFunction):
    """Calls the function with the state of the row's key, which starts as the initial one."""

    def __init__(
        self,
        function: MapFunction,
        initial_state: object,
        state_type: TypeLike,
        known: Mapping[tuple[Any, ...], Any] | None = None,
    ) -> None:
        """`known`: what some keys start with."""
        if not callable(function):
            msg = f"map_with_state needs a function of state and row: got {function!r}"
            raise GraphError(msg)
        self.map = function
        self.state: ValueState[Any] = ValueState(state_type, default=initial_state)
        self.known = known
        if known is not None:
            self.begun: ValueState[bool] = ValueState(bool, default=False)

    def begin(self, ctx: FunctionContext) -> Any:
        """The state of the row's key."""
        if self.known is None or self.begun.get():
            return self.state.get()
        self.begun.set(True)
        return self.known.get(ctx.key)

    def process(self, row: Any, ctx: FunctionContext) -> Iterator[Any]:
        """Give what the function makes of the row."""
        outcome = self.map(self.begin(ctx), row)
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            msg = f"map_with_state needs (state, row) from its function: got {outcome!r}"
            raise FunctionError(msg)
        state, given = outcome
        self.state.set(state)
        yield from rows_in(given)


class MapWithStateUntilTimeout(MapWithState):
    """… and forgets keys that have been silent for so long."""

    def __init__(
        self,
        function: MapFunction,
        initial_state: object,
        state_type: TypeLike,
        timeout: Micros,
        on_timeout: OnTimeout | None,
        known: Mapping[tuple[Any, ...], Any] | None = None,
    ) -> None:
        super().__init__(function, initial_state, state_type, known)
        self.timeout = timeout
        self.at_timeout = on_timeout
        self.ends: ValueState[int | None] = ValueState(int)

    def process(self, row: Any, ctx: FunctionContext) -> Iterator[Any]:
        """Give what the function makes of the row, and move the end of the state on."""
        ends = self.ends.get()
        if ends is not None:
            ctx.delete_event_time_timer(ends)
        assert ctx.event_time is not None  # checked when the graph was built
        self.ends.set(ctx.event_time + self.timeout)
        ctx.register_event_time_timer(ctx.event_time + self.timeout)
        yield from super().process(row, ctx)

    def on_timer(self, time: Micros, ctx: FunctionContext) -> Iterator[Any]:
        """Give what the author wants to send of a state that ends."""
        state = self.state.get()
        self.state.clear()
        self.ends.clear()
        if self.at_timeout is not None:
            yield from rows_in(self.at_timeout(state, ctx.key))


def known_states(table: pl.DataFrame, keys: Schema, dtype: pl.DataType) -> Mapping[Any, Any]:
    """What keys start with: a frame of the key columns and one more. Raises GraphError.

    >>> table = pl.DataFrame({"visits": [7], "user": ["ann"]})
    >>> known_states(table, {"user": pl.String()}, pl.Int64())
    {('ann',): 7}
    """
    others = [name for name in table.columns if name not in keys]
    if len(others) != 1 or any(name not in table.columns for name in keys):
        msg = (
            f"initial states need the columns {', '.join(keys)} and one for the state: got "
            f"{', '.join(table.columns) or 'none'}; select them"
        )
        raise GraphError(msg)
    try:
        types: dict[Any, pl.DataType] = {**keys, others[0]: dtype}
        fitted = table.select(*keys, *others).cast(types)
    except pl.exceptions.PolarsError as error:
        msg = f"initial states do not fit keys and state: {str(error).splitlines()[0]}; cast them"
        raise GraphError(msg) from error
    twice = fitted.select(list(keys)).is_duplicated()
    if twice.any():
        msg = (
            f"initial states name a key twice: got {fitted.filter(twice).row(0)}; keep one of them"
        )
        raise GraphError(msg)
    return {row[:-1]: row[-1] for row in fitted.iter_rows()}


def rows_in(given: Any) -> Iterable[Any]:
    """A row, several or none, as several.

    >>> list(rows_in(None)), list(rows_in({"n": 1})), list(rows_in([{"n": 1}, {"n": 2}]))
    ([], [{'n': 1}], [{'n': 1}, {'n': 2}])
    """
    if given is None:
        return ()
    if isinstance(given, Mapping) or is_dataclass(given):
        return (given,)
    rows: Iterable[Any] = given
    return rows
