"""Map with state: one function of (state, row), for what needs no class.

    def count(state, row):
        n = state + 1
        return n, row | {"n": n}

    stream.key_by("user").map_with_state(count, initial_state=0, state_type=int, timeout="30m")

Order    with a timeout rows come in order of event time; after `timeout` without a row of a key its
         state is dropped, and `on_timeout(state, key)`, if given, says what is to be sent then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from engine.elements import Micros
from engine.errors import FunctionError, GraphError
from engine.functions.context import FunctionContext
from engine.functions.process import KeyedProcessFunction, Row
from engine.functions.states import ValueState
from engine.state.schema import TypeLike

MapFunction = Callable[[Any, Row], tuple[Any, object]]
"""From a state and a row to the new state, and a row, several, or None."""

OnTimeout = Callable[[Any, tuple[Any, ...]], object]
"""From a state and the values of its key to a row, several, or None."""


class MapWithState(KeyedProcessFunction):
    """Calls the function with the state of the row's key, which starts as the initial one."""

    def __init__(self, function: MapFunction, initial_state: object, state_type: TypeLike) -> None:
        if not callable(function):
            msg = f"map_with_state needs a function of state and row: got {function!r}"
            raise GraphError(msg)
        self.map = function
        self.state: ValueState[Any] = ValueState(state_type, default=initial_state)

    def process(self, row: Row, ctx: FunctionContext) -> Iterator[Row]:
        """Give what the function makes of the row."""
        outcome = self.map(self.state.get(), row)
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
    ) -> None:
        super().__init__(function, initial_state, state_type)
        self.timeout = timeout
        self.at_timeout = on_timeout
        self.ends: ValueState[int | None] = ValueState(int)

    def process(self, row: Row, ctx: FunctionContext) -> Iterator[Row]:
        """Give what the function makes of the row, and move the end of the state on."""
        ends = self.ends.get()
        if ends is not None:
            ctx.delete_event_time_timer(ends)
        assert ctx.event_time is not None  # checked when the graph was built
        self.ends.set(ctx.event_time + self.timeout)
        ctx.register_event_time_timer(ctx.event_time + self.timeout)
        yield from super().process(row, ctx)

    def on_timer(self, time: Micros, ctx: FunctionContext) -> Iterator[Row]:
        """Give what the author wants to send of a state that ends."""
        state = self.state.get()
        self.state.clear()
        self.ends.clear()
        if self.at_timeout is not None:
            yield from rows_in(self.at_timeout(state, ctx.key))


def rows_in(given: Any) -> Iterable[Row]:
    """A row, several or none, as several.

    >>> list(rows_in(None)), list(rows_in({"n": 1})), list(rows_in([{"n": 1}, {"n": 2}]))
    ([], [{'n': 1}], [{'n': 1}, {'n': 2}])
    """
    if given is None:
        return ()
    if isinstance(given, Mapping):
        return (dict(given),)
    rows: Iterable[Row] = given
    return rows
