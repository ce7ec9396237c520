"""How functions with state are used: what is checked when the graph is built.

Errors   GraphError for a function of another kind, for columns that have the name of a key, for
         timers or order of event time on a stream without it, for side outputs that cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from engine.elements import EVENT_TIME, RESERVED_COLUMNS
from engine.errors import GraphError
from engine.functions import (
    BroadcastState,
    KeyedBroadcastProcessFunction,
    ProcessFunction,
    StatefulFunction,
    TimeDomain,
    states_of,
)
from engine.functions.process import has_event_timers, has_processing_timers
from engine.functions.row_class import row_class
from engine.graph.logical import Input, Node
from engine.operators.contract import MAIN
from engine.operators.expressions import Schema
from engine.operators.late import LATE_TAGS
from engine.operators.records.keyed_process import Classes
from engine.operators.records.process_rows import ProcessRows
from engine.state.contract import TIME
from engine.state.schema import as_type
from engine.stream.record_steps import Options, Shape
from engine.stream.stream import Stream


@dataclass(frozen=True, slots=True)
class Use:
    """A function on its inputs, checked."""

    ordered: bool
    sides: Mapping[str, Schema]
    """Columns of the side outputs that the function declares."""
    late: Mapping[str, Shape]
    """The rows that come behind their watermark, by their side output."""
    classes: Classes


def checked_use(
    function: StatefulFunction,
    label: str,
    kind: type[StatefulFunction],
    keys: Schema,
    inputs: Sequence[Stream],
    ordered: bool | None,
    result: Shape,
) -> Use:
    """Look at a function and the streams it is to process. Raises GraphError."""
    if not isinstance(function, kind):
        hint = " (pass an object, not the class)" if isinstance(function, type) else ""
        msg = f"process needs a {kind.__name__}{hint}: got {function!r}; derive yours from it"
        raise GraphError(msg)
    _check_states(function, label, keys)
    _check_broadcast(function, label)
    timed = all(EVENT_TIME in stream.schema for stream in inputs)
    _check_time(function, label, ordered, timed=timed)
    wanted = _wants_order(function, timed=timed) if ordered is None else ordered
    late = {
        tag: Shape(stream.schema, stream.row_class)
        for tag, stream in zip(LATE_TAGS, inputs if wanted else (), strict=False)
    }
    sides = _sides(function, label, late, timed=EVENT_TIME in inputs[0].schema)
    classes = Classes(
        takes=[stream.row_class for stream in inputs],
        gives={MAIN: result.row_class, **{tag: side.row_class for tag, side in sides.items()}},
    )
    return Use(wanted, {tag: side.columns for tag, side in sides.items()}, late, classes)


def with_sides(stream: Stream, node: Node, result: Shape, use: Use) -> Stream:
    """The stream of what a function gives, with its side outputs."""
    declared = {tag: Shape(side, use.classes.gives[tag]) for tag, side in use.sides.items()}
    sides = {
        tag: Stream(stream.env, (Input(node, tag),), side.columns, row_class=side.row_class)
        for tag, side in {**declared, **use.late}.items()
    }
    return Stream(stream.env, (Input(node),), result.columns, sides, result.row_class)


def processed(stream: Stream, function: ProcessFunction, result: Shape, options: Options) -> Stream:
    """Run a function without state on a stream. Raises GraphError."""
    label = type(function).__name__
    if isinstance(function, StatefulFunction):
        _check_stateless(function, label)
    use = checked_use(function, label, ProcessFunction, {}, [stream], None, result)
    operator = ProcessRows(function, label, result.columns, sides=use.sides, classes=use.classes)
    uid, name, parallelism = options
    node = stream.env.add(operator, stream.outputs, uid, name, parallelism)
    return with_sides(stream, node, result, use)


def _check_stateless(function: StatefulFunction, label: str) -> None:
    needs = [f"the state {name!r}" for name in states_of(function)]
    needs += ["on_timer"] * has_event_timers(function)
    needs += ["on_processing_timer"] * has_processing_timers(function)
    needs += ["keys"] * (not isinstance(function, ProcessFunction))
    if needs:
        msg = (
            f"function {label!r} has {needs[0]}, which the rows of this stream need a key for; use "
            "stream.key_by(…).process with a KeyedProcessFunction"
        )
        raise GraphError(msg)


def _wants_order(function: StatefulFunction, *, timed: bool) -> bool:
    """Whether a function takes rows in order of event time when its user does not say."""
    broadcast = isinstance(function, KeyedBroadcastProcessFunction)
    return has_event_timers(function) or (broadcast and timed)


def _check_broadcast(function: StatefulFunction, label: str) -> None:
    if isinstance(function, KeyedBroadcastProcessFunction):
        return
    for name, state in states_of(function).items():
        if isinstance(state, BroadcastState):
            msg = (
                f"state {name!r} of {label!r} is a broadcast state; only a "
                "KeyedBroadcastProcessFunction can have one: use a MapState, or derive from that"
            )
            raise GraphError(msg)


def _check_states(function: StatefulFunction, label: str, keys: Schema) -> None:
    columns = {
        f"state {name!r} of {label!r} has": state.columns
        for name, state in states_of(function).items()
    }
    if has_event_timers(function) or has_processing_timers(function):
        columns[f"timers of {label!r} have"] = {TIME: pl.Int64()}
    for has, own in columns.items():
        taken = sorted(own.keys() & {*keys, *RESERVED_COLUMNS})
        if taken:
            msg = (
                f"{has} the column {taken[0]!r}, which is a key of the stream too; rename the "
                "key, e.g. with stream.rename, before key_by"
            )
            raise GraphError(msg)


def _check_time(
    function: StatefulFunction, label: str, ordered: bool | None, *, timed: bool
) -> None:
    if timed:
        return
    if has_event_timers(function):
        needs = "has on_timer"
    elif ordered:
        needs = "takes rows in order of event time"
    else:
        ttls = {name: state.ttl for name, state in states_of(function).items()}
        needs = next(
            (
                f"has the state {name!r} with a TTL of event time"
                for name, ttl in ttls.items()
                if ttl is not None and ttl.domain is TimeDomain.EVENT_TIME
            ),
            "",
        )
    if needs:
        msg = (
            f"function {label!r} {needs}, but not every input has event time; pass watermarks=… to "
            "env.source, or use processing time"
        )
        raise GraphError(msg)


def _sides(
    function: StatefulFunction, label: str, taken: Mapping[str, object], *, timed: bool
) -> Mapping[str, Shape]:
    sides: dict[str, Shape] = {}
    for tag, declared in function.side_outputs.items():
        if tag == MAIN or tag in taken or not tag.strip():
            msg = f"function {label!r} cannot have a side output {tag!r}; choose another name"
            raise GraphError(msg)
        made = row_class(declared) if isinstance(declared, type) else None
        given = declared if made is None else made.columns
        columns = {name: as_type(type_) for name, type_ in given.items()}
        reserved = [name for name in columns if name in RESERVED_COLUMNS]
        if reserved or not columns:
            what = f"the reserved column {reserved[0]!r}" if reserved else "no columns"
            msg = f"side output {tag!r} of {label!r} declares {what}; name its own columns"
            raise GraphError(msg)
        sides[tag] = Shape({**columns, EVENT_TIME: pl.Int64()} if timed else columns, made)
    return sides
