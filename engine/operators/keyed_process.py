"""Keyed process: a user function with state, one row at a time.

    batch --fetch the states of its keys--> function, row by row --write changes back--> rows out

Order    the rows of a key are processed in the order in which they arrive.
Cost     one read and one write of state per key and batch, whatever the number of rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, cast

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP
from engine.functions import (
    BoundValueState,
    CoProcessFunction,
    CurrentKey,
    FunctionContext,
    KeyedProcessFunction,
    Row,
    Rows,
    StatefulFunction,
    bound,
    states_of,
)
from engine.operators.contract import Context, Operator
from engine.operators.rows import RowsOut, rows_of
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import Key, ValueHandle

VALUE = "value"
"""The one value column of a value state."""

Process = Callable[[Row, FunctionContext], Rows]


class _StatefulOperator(Operator):
    """Runs a function with states on keyed rows."""

    def __init__(
        self,
        function: StatefulFunction,
        label: str,
        keys: Mapping[str, pl.DataType],
        schema: Mapping[str, pl.DataType],
    ) -> None:
        self.function = function
        self.label = label
        self.schema = dict(schema)
        self._descriptors = {
            name: StateDescriptor(name, StateKind.VALUE, dict(keys), {VALUE: state.dtype})
            for name, state in states_of(function).items()
        }

    @property
    def states(self) -> Sequence[StateDescriptor]:
        return tuple(self._descriptors.values())

    @abstractmethod
    def _keys(self, port: int) -> Sequence[str]:
        """The key columns of an input."""

    @abstractmethod
    def _process(self, function: StatefulFunction, port: int) -> Process:
        """The method that takes the rows of an input."""

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        keys = list(frame.select(KEY_GROUP, *self._keys(port)).iter_rows())
        current = CurrentKey()
        states = self._fetched(keys, current, ctx)
        process = self._process(bound(self.function, states), port)
        out = RowsOut(f"{self.name} {self.label!r}", self.schema)
        with out.explained():
            for origin, (row, seen) in enumerate(_seen(frame, keys, current, ctx)):
                out.row = row
                for given in process(row, seen) or ():
                    out.add(given, origin)
        for state in states.values():
            state.write_back()
        ctx.emit(out.frame(frame))

    def _fetched(
        self, keys: Sequence[Key], current: CurrentKey, ctx: Context
    ) -> Mapping[str, BoundValueState[object]]:
        declared = states_of(self.function)
        distinct = dict.fromkeys(keys)
        return {
            name: BoundValueState(
                name, declared[name], cast("ValueHandle", ctx.state(descriptor)), distinct, current
            )
            for name, descriptor in self._descriptors.items()
        }

    def describe(self) -> Mapping[str, str]:
        return {"function": self.label, "keys": ", ".join(self._keys(0))}


def _seen(
    frame: pl.DataFrame, keys: Sequence[Key], current: CurrentKey, ctx: Context
) -> Iterator[tuple[Row, FunctionContext]]:
    """Each row with its context, after making its key the current one."""
    times = frame.get_column(EVENT_TIME).to_list() if EVENT_TIME in frame.columns else None
    for index, row in enumerate(rows_of(frame)):
        current.key = keys[index]
        time = None if times is None else times[index]
        yield row, FunctionContext(ctx.watermark, keys[index][1:], time)


class KeyedProcess(_StatefulOperator):
    """Runs a `KeyedProcessFunction`."""

    name: ClassVar[str] = "process"

    def __init__(
        self,
        function: KeyedProcessFunction,
        label: str,
        keys: Mapping[str, pl.DataType],
        schema: Mapping[str, pl.DataType],
    ) -> None:
        super().__init__(function, label, keys, schema)
        self._key_names = tuple(keys)

    def _keys(self, port: int) -> Sequence[str]:
        return self._key_names

    def _process(self, function: StatefulFunction, port: int) -> Process:
        return cast("KeyedProcessFunction", function).process


class CoProcess(_StatefulOperator):
    """Runs a `CoProcessFunction`: input 0 is left, 1 is right; state is kept by the left's keys."""

    name: ClassVar[str] = "co_process"

    def __init__(
        self,
        function: CoProcessFunction,
        label: str,
        keys: Mapping[str, pl.DataType],
        right_keys: Sequence[str],
        schema: Mapping[str, pl.DataType],
    ) -> None:
        super().__init__(function, label, keys, schema)
        self._sides = (tuple(keys), tuple(right_keys))

    def _keys(self, port: int) -> Sequence[str]:
        return self._sides[port]

    def _process(self, function: StatefulFunction, port: int) -> Process:
        co = cast("CoProcessFunction", function)
        return co.process_right if port else co.process_left
