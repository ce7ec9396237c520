"""Keyed streams: rows of a key come together, so windows and functions may keep state of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

import polars as pl

from engine import evictors, triggers
from engine.durations import Duration, positive_duration
from engine.elements import EVENT_TIME
from engine.errors import GraphError
from engine.functions import CoProcessFunction, KeyedProcessFunction
from engine.functions.map_with_state import (
    MapFunction,
    MapWithState,
    MapWithStateUntilTimeout,
    OnTimeout,
    known_states,
)
from engine.functions.row_class import SchemaLike
from engine.graph.logical import Input
from engine.operators.columns.key_by import KeyBy
from engine.operators.records.keyed_process import CoProcess, KeyedProcess
from engine.operators.windows.rows import AnyWindow
from engine.state.schema import TypeLike, as_type
from engine.stream.broadcast import BroadcastConnectedStreams, BroadcastStream
from engine.stream.functions import checked_use, with_sides
from engine.stream.join_checks import check_one_job
from engine.stream.joined import KeyedJoins
from engine.stream.stream import Stream
from engine.stream.ties import numbered
from engine.stream.windowed import WindowedStream
from engine.windows import Global


class KeyedStream(KeyedJoins):
    """A stream, and the columns that its state goes by."""

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self.stream = stream
        self.keys = keys

    @property
    def key_types(self) -> dict[str, pl.DataType]:
        """The key columns with their types."""
        return {key: self.stream.schema[key] for key in self.keys}

    def window(self, window: AnyWindow) -> WindowedStream:
        """Gather the rows of each key in windows of event time, or in a global one."""
        if EVENT_TIME not in self.stream.schema and not isinstance(window, Global):
            msg = (
                f"window {window} needs event time, which the stream does not have; "
                "pass watermarks=… to env.source, e.g. bounded_out_of_orderness('1s', 'time')"
            )
            raise GraphError(msg)
        return WindowedStream(self, window)

    def count_window(self, size: int, slide: int | None = None) -> WindowedStream:
        """Gather each `size` rows of a key; or at each `slide` rows the last `size`.

        In order of event time; on a stream without it as they come, which is exempt from the law of
        the same output. Rows that do not fill a window at the end of input are left out.
        """
        window = self.window(Global())
        if slide is None:
            return window.trigger(triggers.purging(triggers.count(size)))
        return window.trigger(triggers.count(slide)).evictor(evictors.count(size))

    def number_ties(
        self,
        column: str,
        *,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Number the rows of a key that have one event time: null for the first, then 1, 2, ….

        In order of their values, once event time has passed them: so any run gives the same rows
        the same numbers. As a tag of points, it keeps those of one time apart. Side output: "late",
        rows that came behind their watermark. Raises GraphError.

        >>> import engine as hw
        >>> from engine.connectors.generator import SensorGenerator
        >>> env, times = hw.Environment("sensors"), hw.monotonic("time")
        >>> rows = env.source(SensorGenerator(rate=1), watermarks=times).key_by("sensor")
        >>> list(rows.number_ties("sequence").schema)
        ['sensor', 'time', 'value', 'event_time', 'sequence']
        """
        return numbered(self, column, (uid, name, parallelism))

    @overload
    def connect(self, other: KeyedStream) -> ConnectedStreams: ...
    @overload
    def connect(self, other: BroadcastStream) -> BroadcastConnectedStreams: ...
    def connect(
        self, other: KeyedStream | BroadcastStream
    ) -> ConnectedStreams | BroadcastConnectedStreams:
        """Bring two streams together that are keyed alike, or one that is broadcast to this."""
        if isinstance(other, BroadcastStream):
            return BroadcastConnectedStreams(self, other)
        mine, theirs = list(self.key_types.values()), list(other.key_types.values())
        if mine != theirs:
            msg = (
                f"connect needs keys of equal types: got {_typed(self.key_types)} and "
                f"{_typed(other.key_types)}; cast one of them"
            )
            raise GraphError(msg)
        return ConnectedStreams(self, other)

    def process(
        self,
        function: KeyedProcessFunction,
        *,
        schema: SchemaLike | None = None,
        ordered: bool | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Run a function with state. `schema`: columns of its rows, when they differ.

        `ordered`: whether it takes rows in order of event time; by default if it has `on_timer`.
        Side outputs: those that the function declares, and "late" when it is ordered.
        """
        stream, keys = self.stream, self.key_types
        label = type(function).__name__
        result = stream.shape(schema)
        use = checked_use(function, label, KeyedProcessFunction, keys, [stream], ordered, result)
        waiting = stream.schema if use.ordered else None
        operator = KeyedProcess(
            function,
            label,
            keys,
            result.columns,
            sides=use.sides,
            in_order_of=waiting,
            classes=use.classes,
        )
        node = stream.env.add(operator, self.partitioned(uid, "key"), uid, name, parallelism)
        return with_sides(stream, node, result, use)

    def map_with_state(
        self,
        function: MapFunction,
        *,
        initial_state: object,
        state_type: TypeLike,
        timeout: Duration | None = None,
        on_timeout: OnTimeout | None = None,
        schema: SchemaLike | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Make rows with `function(state, row) -> (state, row)`, with a state per key.

        `initial_state`: what every key starts with, or a frame of the key columns and one more:
        what those keys start with, and all others with None.
        `timeout`: a length of event time (a number is µs) after which a key without rows is
        forgotten, and `on_timeout(state, key)` may give a last row. With it rows come in order of
        event time, and the side output "late" has those that came too late for that.
        """
        known = None
        if isinstance(initial_state, pl.DataFrame):
            known = known_states(initial_state, self.key_types, as_type(state_type))
            initial_state = None
        made: KeyedProcessFunction = MapWithState(function, initial_state, state_type, known)
        if timeout is not None:
            length = positive_duration(timeout, "timeout", "'30m'")
            made = MapWithStateUntilTimeout(
                function, initial_state, state_type, length, on_timeout, known
            )
        elif on_timeout is not None:
            msg = "map_with_state has on_timeout but no timeout; pass timeout='30m'"
            raise GraphError(msg)
        shown = name or uid or "map_with_state"
        return self.process(made, schema=schema, uid=uid, name=shown, parallelism=parallelism)

    def partitioned(self, uid: str | None, role: str, port: int = 0) -> tuple[Input, ...]:
        """Stamp key groups, and give the inputs of the operator that is to get the rows."""
        stamped = []
        for number, output in enumerate(self.stream.outputs):
            suffix = role if len(self.stream.outputs) == 1 else f"{role}-{number + 1}"
            own = None if uid is None else f"{uid}.{suffix}"
            operator, parallelism = KeyBy(self.keys), output.node.parallelism
            node = self.stream.env.add(operator, (output,), own, None, parallelism)
            stamped.append(Input(node, port=port, keys=self.keys))
        return tuple(stamped)


class ConnectedStreams:
    """Two streams that share keyed state."""

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        check_one_job("connect", left.stream, right.stream)
        self.left = left
        self.right = right

    def process(
        self,
        function: CoProcessFunction,
        *,
        schema: SchemaLike | None = None,
        ordered: bool | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Run a function with state. `schema`: columns of its rows, when not those of the left.

        `ordered`: whether it takes the rows of both inputs in order of event time; by default if it
        has `on_timer`. Side outputs: those that the function declares; "late" and "late_right" when
        it is ordered.
        """
        left, right = self.left.stream, self.right.stream
        keys, right_keys = self.left.key_types, self.right.keys
        label = type(function).__name__
        result = left.shape(schema)
        use = checked_use(function, label, CoProcessFunction, keys, [left, right], ordered, result)
        waiting = (left.schema, right.schema) if use.ordered else ()
        operator = CoProcess(
            function,
            label,
            keys,
            right_keys,
            result.columns,
            sides=use.sides,
            in_order_of=waiting,
            classes=use.classes,
        )
        inputs = self.left.partitioned(uid, "left")
        inputs = (*inputs, *self.right.partitioned(uid, "right", port=1))
        node = left.env.add(operator, inputs, uid, name, parallelism)
        return with_sides(left, node, result, use)


def _typed(keys: Mapping[str, pl.DataType]) -> str:
    return ", ".join(f"{name}: {dtype}" for name, dtype in keys.items())
