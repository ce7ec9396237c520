"""Record functions: a method per row of an input, and one per timer.

    class Amplifier(hw.CoProcessFunction):
        factor = hw.ValueState(float, default=1.0)
        def process_left(self, reading, ctx):
            yield reading | {"value": reading["value"] * self.factor.get()}
        def process_right(self, control, ctx):
            self.factor.set(control["factor"])

    class Silence(hw.KeyedProcessFunction):
        last = hw.ValueState(int)
        def process(self, row, ctx):
            self.last.set(ctx.event_time)
            ctx.register_event_time_timer(ctx.event_time + 60_000_000)
        def on_timer(self, time, ctx):
            if time == self.last.get() + 60_000_000:
                yield {"sensor": ctx.key[0], "silent_since": self.last.get()}

Shapes     rows are dicts, or objects of a dataclass where one is declared (`stream.rows_as`,
           `schema=`); a method yields (or returns a list of) rows, or nothing.
Guarantee  states are those of the row's key and are in every snapshot. Other attributes are
           settings: what a method puts there may be lost at any time.
Order      a function with `on_timer` gets rows and timers in order of event time, however they
           came: a timer of time t after all rows before t, and before all others; rows of one time
           by their values, for the order of arrival between splits is a matter of speed. Rows that
           came behind their watermark go to the side output "late". (`ordered=False` where it is
           used gives both as they come, as in Flink: then what a timer sees may depend on the
           speed.)
           A function without `on_timer` gets rows as they come, unless `ordered=True`: those of a
           key that lie in several splits then meet in an order that depends on the speed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, ClassVar, TypeVar

from engine.elements import Micros
from engine.functions.context import FunctionContext
from engine.functions.row_class import SchemaLike
from engine.functions.states import State

F = TypeVar("F")

Row = dict[str, Any]
"""A row of a stream whose rows are no objects of a class."""

Rows = Iterable[Any] | None
"""What a method gives: rows, dicts or objects of the class that was promised."""


class StatefulFunction(ABC):  # noqa: B024  nothing is abstract here, and none is made of it
    """Root of the functions that run on streams."""

    side_outputs: ClassVar[Mapping[str, SchemaLike]] = {}
    """Columns, or a dataclass, of what `ctx.emit(row, to=tag)` sends aside, by tag."""

    def on_timer(self, time: Micros, ctx: FunctionContext) -> Rows:
        """Event time has reached a timer of the key. Rows get the time of the timer."""
        raise NotImplementedError

    def on_processing_timer(self, time: Micros, ctx: FunctionContext) -> Rows:
        """The clock has reached a timer of the key. Rows get the watermark as their event time."""
        raise NotImplementedError


class ProcessFunction(StatefulFunction):
    """Processes the rows of a stream without keys: no state and no timers, but side outputs."""

    @abstractmethod
    def process(self, row: Any, ctx: FunctionContext) -> Rows:
        """Take one row."""


class KeyedProcessFunction(StatefulFunction):
    """Processes the rows of one keyed stream."""

    @abstractmethod
    def process(self, row: Any, ctx: FunctionContext) -> Rows:
        """Take one row."""


class CoProcessFunction(StatefulFunction):
    """Processes the rows of two streams that are keyed alike, with shared state."""

    @abstractmethod
    def process_left(self, row: Any, ctx: FunctionContext) -> Rows:
        """Take one row of the first stream."""

    @abstractmethod
    def process_right(self, row: Any, ctx: FunctionContext) -> Rows:
        """Take one row of the second stream."""


class KeyedBroadcastProcessFunction(StatefulFunction):
    """Processes the rows of a keyed stream by what a second stream tells all of them.

    class Priced(hw.KeyedBroadcastProcessFunction):
        prices = hw.BroadcastState(str, float)
        def process(self, order, ctx):
            yield order | {"price": self.prices.get(order["item"])}
        def process_broadcast(self, price, ctx):
            self.prices.put(price["item"], price["price"])

    Order    in order of event time when both streams have it: a broadcast row of time t counts for
             all rows from t on. Otherwise rows meet as they come.
    """

    @abstractmethod
    def process(self, row: Any, ctx: FunctionContext) -> Rows:
        """Take one row of the keyed stream; broadcast states can be read."""

    @abstractmethod
    def process_broadcast(self, row: Any, ctx: FunctionContext) -> Rows:
        """Take one row of the broadcast stream, on every subtask: there is no key, and what it does
        must be the same everywhere. Rows that it gives are given by every subtask.
        """


def has_event_timers(function: StatefulFunction) -> bool:
    """Whether a function wants to hear of event time."""
    return type(function).on_timer is not StatefulFunction.on_timer


def has_processing_timers(function: StatefulFunction) -> bool:
    """Whether a function wants to hear of the clock."""
    return type(function).on_processing_timer is not StatefulFunction.on_processing_timer


def states_of(function: object) -> Mapping[str, State]:
    """The states that a function declares, by attribute name, sorted."""
    owners = [*reversed(type(function).__mro__), function]
    found = {
        name: value
        for owner in owners
        for name, value in vars(owner).items()
        if isinstance(value, State)
    }
    return dict(sorted(found.items()))


def bound(function: F, states: Mapping[str, State]) -> F:
    """A copy of the function whose states work."""
    instance = copy(function)
    for name, state in states.items():
        setattr(instance, name, state)
    return instance
