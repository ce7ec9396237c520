"""Windowed streams: the rows of each key, gathered in windows.

    keyed.window(windows.tumbling("1m"))        which rows belong together
         .allowed_lateness("1h")                how late they may be
         .trigger(triggers.count(100))          when there is a result
         .evictor(evictors.count(100))          of which of the rows
         .agg | .reduce | .aggregate | .apply   and what it is

Cost     `agg` without a trigger and an evictor keeps partials of slices, made before the shuffle;
         all else keeps rows, or an accumulator, per key and window behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Self

import polars as pl

from engine.aggregates import AggregateFunction, Aggregation, Partials
from engine.durations import Duration
from engine.elements import RESERVED_COLUMNS, Micros
from engine.errors import GraphError
from engine.evictors import Evictor
from engine.graph.logical import Input
from engine.operators.contract import Operator
from engine.operators.expressions import Schema, infer
from engine.operators.late import LATE
from engine.operators.windows.horizons import horizons, updates
from engine.operators.windows.partial_aggregate import COUNTS_FROM, PartialAggregate
from engine.operators.windows.rows import AnyWindow, WindowFunction
from engine.operators.windows.session_aggregate import (
    PartialSessions,
    SessionAggregate,
    session_partials,
)
from engine.operators.windows.sliced_aggregate import SlicedAggregate
from engine.operators.windows.window_aggregate import WINDOW_END, WINDOW_START, WindowAggregate
from engine.state.contract import SLICE_END
from engine.state.schema import TypeLike
from engine.stream.kept_windows import KeptWindows, ReduceFunction
from engine.stream.stream import Stream
from engine.triggers import Trigger
from engine.windows import Global, Session, SlicedWindows, Tumbling

if TYPE_CHECKING:
    from engine.stream.keyed import KeyedStream


class WindowedStream:
    """The rows of each key, gathered in windows.

    >>> import polars as pl
    >>> import engine as hw
    >>> from engine import agg, triggers, windows
    >>> from engine.connectors.frame import FrameSource
    >>> trades = FrameSource(pl.DataFrame({"share": ["ACME"], "price": [1.5], "at": [0]}))
    >>> stream = hw.Environment("trades").source(trades, watermarks=hw.monotonic("at"))
    >>> lots = stream.key_by("share").window(windows.global_()).trigger(triggers.count(100))
    >>> lots.agg(mean=agg.mean("price"))
    Stream(share: String, mean: Float64, event_time: Int64)
    """

    def __init__(self, keyed: KeyedStream, window: AnyWindow) -> None:
        self.keyed = keyed
        self.stream = keyed.stream
        self.keys = keyed.key_types
        self.window = window
        self._allowed = self._every = Micros(0)
        self._updates = False
        self._trigger: Trigger | None = None
        self._evictor: Evictor | None = None

    def allowed_lateness(self, allowed: Duration, *, every: Duration | None = None) -> Self:
        """Let late rows correct windows that have fired, for a while.

        A window fires when event time reaches its end, and again at each `every` after that, up to
        `allowed`, for the keys of which late rows came; by default once, at `allowed`. A trigger
        says itself what late rows do. Rows that are later than that go to the side output "late".
        The row's own split decides which of the results counts it first, so the same results come
        out at any speed and parallelism.
        """
        if isinstance(self.window, Global):
            msg = (
                f"window {self.window} takes no allowed lateness: no row is late for it; leave out"
            )
            raise GraphError(msg)
        made = copy(self)
        made._allowed, made._every = updates(allowed, every)
        made._updates = every is not None
        return made

    def trigger(self, trigger: Trigger) -> Self:
        """Say when windows give results, in place of the end of the window: see `triggers`.

        Triggers see the rows of a key in order of event time. A result that comes before the end of
        its window has the event time of the end; one of a global window, that of its last row.
        """
        if not isinstance(trigger, Trigger):
            msg = f"trigger is not one: got {trigger!r}; pass e.g. triggers.count(100)"
            raise GraphError(msg)
        made = copy(self)
        made._trigger = trigger
        return made

    def evictor(self, evictor: Evictor) -> Self:
        """Say which rows windows forget when they give a result: see `evictors`.

        State is all rows of the window, also for `agg`, `reduce` and `aggregate`.
        """
        if not isinstance(evictor, Evictor):
            msg = f"evictor is not one: got {evictor!r}; pass e.g. evictors.count(100)"
            raise GraphError(msg)
        made = copy(self)
        made._evictor = evictor
        return made

    def agg(
        self,
        *,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
        **aggregations: Aggregation,
    ) -> Stream:
        """Compute aggregates per key and window: keys, window_start, window_end, aggregates.

        Side output "late": rows whose last window, and the allowed lateness, had passed before they
        came.
        """
        source, keys = self.stream, self.keys
        self._check_names(aggregations)
        values = _value_types(source.schema, aggregations)
        accumulators = {n: spec.accumulator(n, values[n]) for n, spec in aggregations.items()}
        expressions = {n: spec.of for n, spec in aggregations.items()}
        partials = Partials(accumulators, expressions)
        if self._trigger is not None or self._evictor is not None:
            return self._kept().agg(partials, uid, name, parallelism)
        match self.window:
            case SlicedWindows():
                partial, whole = self._sliced(self.window, partials)
            case Session() if not self._allowed:
                fragments = session_partials(accumulators, expressions)
                partial = PartialSessions(list(keys), self.window, fragments)
                whole = SessionAggregate(keys, self.window, fragments, partials)
            case _:
                return self._kept().agg(partials, uid, name, parallelism)
        own = None if uid is None else f"{uid}.partial"
        env = source.env
        # Beside its input, whatever that is: what it saves is the traffic of the shuffle.
        before = source.outputs[0].node.parallelism
        early = env.add(partial, source.outputs, own, None, before)
        node = env.add(whole, (Input(early, keys=tuple(keys)),), uid, name, parallelism)
        late = Stream(env, (Input(early, LATE),), source.schema)
        return Stream(env, (Input(node),), whole.schema, {LATE: late})

    def _sliced(
        self, window: SlicedWindows, partials: Partials
    ) -> tuple[Operator, WindowAggregate | SlicedAggregate | SessionAggregate]:
        """What runs before the shuffle, and after it."""
        late = horizons(window, self._allowed, self._every if self._allowed else None)
        partial = PartialAggregate(list(self.keys), late, partials)
        if isinstance(window, Tumbling) and not late.allowed:
            return partial, WindowAggregate(self.keys, window, partials)
        return partial, SlicedAggregate(self.keys, late, partials)

    def reduce(
        self,
        function: ReduceFunction,
        *,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Make one row of two, again and again: the last one of each window is its result.

        Rows are dicts of the stream's columns without the keys, in order of event time. Gives keys,
        window_start, window_end and the row. State is one row per key and window.

        For example `reduce(lambda one, other: max(one, other, key=itemgetter("price")))`.
        Raises FunctionError, when it runs, for what is not a dict of these columns.
        """
        return self._kept().reduce(function, uid, name, parallelism)

    def aggregate(
        self,
        function: AggregateFunction,
        *,
        schema: Mapping[str, TypeLike] | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Add rows to an accumulator of your own: see `agg.AggregateFunction`.

        `add` gets each row as a dict, in order of event time; `merge` is called for sessions that
        become one. Gives keys, window_start, window_end, and what `result` gives: a dict of the
        columns of `schema`, or without that one value of `result_type`, as column `result`. State
        is one accumulator per key and window.
        """
        return self._kept().aggregate(function, schema, uid, name, parallelism)

    def apply(
        self,
        function: WindowFunction,
        *,
        schema: Mapping[str, TypeLike],
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Call a function with all rows of a window as a frame, and a `WindowContext`.

        Rows have all columns of the stream and are in order of event time, those that came behind
        their watermark at its place. The function gives a frame of `schema`, of any height. Gives
        keys, window_start, window_end, and these columns. State is all rows of the window.

        For example `apply(lambda rows, ctx: rows.select(pl.corr("price", "volume")), schema=…)`.
        Raises FunctionError, when it runs, for what is not a frame of `schema`.
        """
        return self._kept().apply(function, schema, uid, name, parallelism)

    def _kept(self) -> KeptWindows:
        if self._updates and self._trigger is not None:
            msg = (
                f"allowed lateness has `every` beside trigger {str(self._trigger)!r}, which says "
                "itself when late rows fire; leave one of them out"
            )
            raise GraphError(msg)
        return KeptWindows(
            self.keyed, self.window, self._allowed, self._every, self._trigger, self._evictor
        )

    def _check_names(self, aggregations: Mapping[str, Aggregation]) -> None:
        if not aggregations:
            msg = "agg computes nothing: got no aggregates; pass e.g. n=agg.count()"
            raise GraphError(msg)
        taken = {*self.keys, WINDOW_START, WINDOW_END, SLICE_END, COUNTS_FROM, *RESERVED_COLUMNS}
        for name, aggregation in aggregations.items():
            if name in taken:
                msg = f"aggregate {name!r} has the name of another column; choose another"
                raise GraphError(msg)
            if not isinstance(aggregation, Aggregation):
                msg = f"aggregate {name!r} is not one: got {aggregation!r}; pass e.g. agg.sum('x')"
                raise GraphError(msg)


def _value_types(
    schema: Schema, aggregations: Mapping[str, Aggregation]
) -> Mapping[str, pl.DataType]:
    types = {}
    for name, aggregation in aggregations.items():
        made = infer(schema, [aggregation.of.alias(name)], f"aggregate {name!r}")
        types[name] = made[name]
    return types
