"""Windows that keep their rows, put into the graph: what is checked, and what runs.

    stream ──key groups──▶ hash edge ──▶ WindowRows ──▶ results
                                             └──▶ side output "late"

Errors   GraphError for a global window without a trigger, a trigger that cannot merge on sessions,
         an evictor that does not fit the columns, results that have the name of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from engine.aggregates import AggregateFunction, Partials
from engine.elements import EVENT_TIME, RESERVED_COLUMNS, Micros
from engine.errors import GraphError
from engine.evictors import Evictor
from engine.graph.logical import Input
from engine.operators.late import LATE
from engine.operators.windows.rows import (
    Aggregated,
    Aggregates,
    AnyWindow,
    Applied,
    Contents,
    Fold,
    FoldContents,
    Folded,
    Reduced,
    Results,
    RowContents,
    WindowFunction,
    WindowRows,
)
from engine.operators.windows.rows.assign import BOUNDS
from engine.operators.windows.window_aggregate import WINDOW_END, WINDOW_START
from engine.state.contract import INDEX, MAP_KEY, TIME
from engine.state.schema import TypeLike, as_type, type_name, type_named
from engine.stream.record_steps import label_of
from engine.stream.stream import Stream
from engine.triggers import Trigger
from engine.triggers.by_time import EventTime, ProcessingTime
from engine.windows import Global, Session

if TYPE_CHECKING:
    from engine.stream.keyed import KeyedStream

ReduceFunction = Callable[[dict[str, Any], dict[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class KeptWindows:
    """Windows of a keyed stream, with all that was said of them."""

    keyed: KeyedStream
    window: AnyWindow
    allowed: Micros
    every: Micros
    given: Trigger | None
    evictor: Evictor | None

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """Columns of the stream."""
        return self.keyed.stream.schema

    @property
    def keys(self) -> Mapping[str, pl.DataType]:
        """Key columns."""
        return self.keyed.key_types

    def agg(
        self, partials: Partials, uid: str | None, name: str | None, parallelism: int | None
    ) -> Stream:
        """Declared aggregates over the rows."""
        rows = self._rows()
        return self._add(rows, Aggregates(rows, partials), uid, name, parallelism)

    def apply(
        self,
        function: WindowFunction,
        schema: Mapping[str, TypeLike],
        uid: str | None,
        name: str | None,
        parallelism: int | None,
    ) -> Stream:
        """A function of the whole window."""
        label = _label(function, "apply", "a function of (frame, context)")
        types = self._declared(schema, f"apply {label!r}")
        rows = self._rows()
        results = Applied(rows, function, label, types)
        return self._add(rows, results, uid, name or uid or label, parallelism)

    def reduce(
        self, function: ReduceFunction, uid: str | None, name: str | None, parallelism: int | None
    ) -> Stream:
        """A function of two rows."""
        label = _label(function, "reduce", "a function of two rows")
        fold = Reduced(function, label, self.keys, self.schema)
        return self._fold(fold, uid, name or uid or label, parallelism)

    def aggregate(
        self,
        function: AggregateFunction,
        schema: Mapping[str, TypeLike] | None,
        uid: str | None,
        name: str | None,
        parallelism: int | None,
    ) -> Stream:
        """An accumulator of the author's own."""
        label = type(function).__name__
        if not isinstance(function, AggregateFunction):
            msg = (
                f"aggregate needs an agg.AggregateFunction: got {function!r}; derive yours from it"
            )
            raise GraphError(msg)
        types = {"result": function.result_type} if schema is None else schema
        fold = Aggregated(function, label, self._declared(types, f"aggregate {label!r}"))
        return self._fold(fold, uid, name or uid or label, parallelism)

    def _fold(
        self, fold: Fold, uid: str | None, name: str | None, parallelism: int | None
    ) -> Stream:
        self._check_results(fold.result_types, fold.step)
        if self.evictor is None:
            return self._add(FoldContents(self.keys, fold), Folded(fold), uid, name, parallelism)
        rows = self._rows()
        return self._add(rows, Folded(fold, rows), uid, name, parallelism)

    def _rows(self) -> RowContents:
        for dtype in self.schema.values():
            type_named(type_name(dtype))  # what a snapshot cannot name, a window cannot keep
        if self.evictor is not None:
            self._check_evictor(self.evictor)
        return RowContents(self.keys, self.schema, self.evictor)

    def _check_evictor(self, evictor: Evictor) -> None:
        empty = pl.DataFrame(schema=dict(self.schema))
        try:
            evictor.evict_after(evictor.evict_before(empty))
        except pl.exceptions.ColumnNotFoundError as error:
            named = str(error).partition('"')[2].partition('"')[0]
            msg = (
                f"evictor {str(evictor)!r} names an unknown column: got {named!r}; the stream has "
                f"{', '.join(self.schema)}"
            )
            raise GraphError(msg) from error
        except Exception as error:
            msg = (
                f"evictor {str(evictor)!r} fails on an empty window: {type(error).__name__}: "
                f"{str(error).partition(chr(10))[0]}; let it give the rows to keep"
            )
            raise GraphError(msg) from error

    def _add(
        self,
        contents: Contents,
        results: Results,
        uid: str | None,
        name: str | None,
        parallelism: int | None,
    ) -> Stream:
        for key in self.keys:
            if key in (TIME, INDEX, MAP_KEY, WINDOW_START, WINDOW_END):
                msg = f"key {key!r} has the name of a column of windows; rename it before key_by"
                raise GraphError(msg)
        env, trigger = self.keyed.stream.env, self._trigger()
        operator = WindowRows(
            self.keys, self.schema, self.window, trigger, contents, results, self.allowed
        )
        inputs = self.keyed.partitioned(uid, "key")
        node = env.add(operator, inputs, uid, name, parallelism)
        late = Stream(env, (Input(node, LATE),), self.schema)
        return Stream(env, (Input(node),), operator.schema, {LATE: late})

    def _trigger(self) -> Trigger:
        """The trigger, or what windows have without one; checked."""
        window, trigger = self.window, self.given
        if trigger is None:
            if isinstance(window, Global):
                msg = (
                    f"window {window} never gives a result: it has no end and no trigger; add e.g. "
                    ".trigger(triggers.count(100))"
                )
                raise GraphError(msg)
            return EventTime(self.every or None)
        self._check_trigger(trigger)
        return trigger

    def _check_trigger(self, trigger: Trigger) -> None:
        window, shown = self.window, f"trigger {str(trigger)!r}"
        if isinstance(window, Session) and not trigger.can_merge:
            msg = f"{shown} cannot be used with {window}: sessions merge; define its on_merge"
            raise GraphError(msg)
        if trigger.needs_event_time and EVENT_TIME not in self.schema:
            msg = f"{shown} needs event time, which the stream does not have; pass watermarks=…"
            raise GraphError(msg)
        if isinstance(window, Global) and isinstance(trigger, ProcessingTime):
            msg = f"{shown} never fires in a global window; use continuous_processing_time('1s')"
            raise GraphError(msg)
        taken = {*self.keys, *BOUNDS, *RESERVED_COLUMNS}
        for name, state in trigger.states.items():
            if state.ttl is not None:
                msg = f"state {name!r} of {shown} has a TTL; it lives as long as its window"
                raise GraphError(msg)
            clash = sorted(state.columns.keys() & taken)
            if clash:
                msg = (
                    f"state {name!r} of {shown} has the column {clash[0]!r}, which is a key too; "
                    "rename the key before key_by"
                )
                raise GraphError(msg)

    def _declared(self, schema: Mapping[str, TypeLike], step: str) -> Mapping[str, pl.DataType]:
        types = {column: as_type(type_) for column, type_ in schema.items()}
        if not types:
            msg = f"{step} gives nothing: got no columns; name them in schema={{…}}"
            raise GraphError(msg)
        self._check_results(types, step)
        return types

    def _check_results(self, types: Mapping[str, pl.DataType], step: str) -> None:
        taken = {*self.keys, *RESERVED_COLUMNS}
        if not isinstance(self.window, Global):
            taken |= {WINDOW_START, WINDOW_END}
        for column in types:
            if column in taken:
                msg = f"{step} gives the column {column!r}, which is there already; choose another"
                raise GraphError(msg)


def _label(function: object, step: str, wanted: str) -> str:
    if not callable(function):
        msg = f"{step} needs {wanted}: got {function!r}; pass one"
        raise GraphError(msg)
    return label_of(function)
