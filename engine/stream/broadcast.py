"""Broadcast streams: every row goes to all subtasks of a function, in the same order everywhere.

    rules ──▶ one subtask ──broadcast──▶ every subtask of the function ◀──hash── keyed stream

    notices ──broadcast──▶ every subtask of any other step: as many copies of a row as subtasks

Needs    in order of event time, a broadcast stream holds the keyed one up until its watermark goes
         on: give it `idle_after` when it is often silent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from engine.errors import GraphError
from engine.functions import KeyedBroadcastProcessFunction
from engine.functions.row_class import SchemaLike
from engine.graph.jobgraph import Partitioning
from engine.graph.logical import Input
from engine.operators.columns.key_by import ToAll
from engine.operators.records.keyed_process import KeyedBroadcastProcess
from engine.stream.functions import checked_use, with_sides
from engine.stream.join_checks import check_one_job
from engine.stream.stream import Stream

if TYPE_CHECKING:
    from engine.stream.keyed import KeyedStream


class BroadcastStream(Stream):
    """A stream whose rows are told to everybody.

    Connected with a keyed stream, it tells a function what to do. Any other step runs once per
    subtask on each row, so what comes out depends on its parallelism.
    """

    def __init__(self, stream: Stream) -> None:
        outputs = tuple(replace(output, dealt=Partitioning.BROADCAST) for output in stream.outputs)
        super().__init__(stream.env, outputs, stream.schema, row_class=stream.row_class)
        self.stream = stream

    def key_by(self, *keys: str) -> NoReturn:
        """Refused: state would count a row once per subtask."""
        msg = (
            f"key_by({', '.join(keys)}) of a broadcast stream would count each row once per "
            "subtask; key the stream itself, and connect it with keyed.connect(…)"
        )
        raise GraphError(msg)


class BroadcastConnectedStreams:
    """A keyed stream, and one that tells all of its subtasks what to do."""

    def __init__(self, keyed: KeyedStream, broadcast: BroadcastStream) -> None:
        check_one_job("connect", keyed.stream, broadcast.stream)
        self.keyed = keyed
        self.broadcast = broadcast.stream

    def process(
        self,
        function: KeyedBroadcastProcessFunction,
        *,
        schema: SchemaLike | None = None,
        ordered: bool | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Run a function with state. `schema`: columns of its rows, when not those of the keyed.

        `ordered`: whether it takes the rows of both in order of event time; by default when both
        have it. Side outputs: those that the function declares; "late" and "late_right" (of the
        broadcast stream) when it is ordered.
        """
        stream, keys = self.keyed.stream, self.keyed.key_types
        label = type(function).__name__
        result = stream.shape(schema)
        inputs = [stream, self.broadcast]
        use = checked_use(
            function, label, KeyedBroadcastProcessFunction, keys, inputs, ordered, result
        )
        waiting = (stream.schema, self.broadcast.schema) if use.ordered else ()
        operator = KeyedBroadcastProcess(
            function,
            label,
            keys,
            result.columns,
            sides=use.sides,
            in_order_of=waiting,
            classes=use.classes,
        )
        own = None if uid is None else f"{uid}.broadcast"
        told = stream.env.add(ToAll(), self.broadcast.outputs, own, None, 1)
        edges = (
            *self.keyed.partitioned(uid, "key"),
            Input(told, port=1, dealt=Partitioning.BROADCAST),
        )
        node = stream.env.add(operator, edges, uid, name, parallelism)
        return with_sides(stream, node, result, use)
