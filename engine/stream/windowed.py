"""Windowed streams: the rows of each key, gathered in windows of event time."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from engine.aggregates import Accumulator, Aggregation, Partials
from engine.durations import Duration
from engine.elements import RESERVED_COLUMNS
from engine.errors import GraphError
from engine.graph.logical import Input
from engine.operators.contract import Operator
from engine.operators.expressions import Schema, infer
from engine.operators.horizons import Horizons, horizons
from engine.operators.partial_aggregate import COUNTS_FROM, LATE, PartialAggregate
from engine.operators.session_aggregate import (
    PartialSessions,
    SessionAggregate,
    session_partials,
)
from engine.operators.sliced_aggregate import SlicedAggregate
from engine.operators.window_aggregate import WINDOW_END, WINDOW_START, WindowAggregate
from engine.state.contract import SLICE_END
from engine.stream.stream import Stream
from engine.windows import Session, SlicedWindows, Tumbling


class WindowedStream:
    """The rows of each key, gathered in windows."""

    def __init__(
        self,
        stream: Stream,
        keys: Mapping[str, pl.DataType],
        window: SlicedWindows | Session,
        late: Horizons | None = None,
    ) -> None:
        self.stream = stream
        self.keys = dict(keys)
        self.window = window
        self._late = late

    def allowed_lateness(
        self, allowed: Duration, *, every: Duration | None = None
    ) -> WindowedStream:
        """Let late rows correct windows that have fired, for a while.

        A window fires when event time reaches its end, and again at each `every` after that, up to
        `allowed`, for the keys of which late rows came; by default once, at `allowed`. Rows that
        are later than that go to the side output "late". The row's own split decides which of the
        results counts it first, so the same results come out at any speed and parallelism.
        """
        if isinstance(self.window, Session):
            msg = (
                f"window {self.window} takes no allowed lateness: late rows could join sessions "
                "that have fired; expect more disorder with bounded_out_of_orderness instead"
            )
            raise GraphError(msg)
        late = horizons(self.window, allowed, every)
        return WindowedStream(self.stream, self.keys, self.window, late)

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
        partial, whole = self._halves(
            {each: spec.accumulator(each, values[each]) for each, spec in aggregations.items()},
            {each: spec.of for each, spec in aggregations.items()},
        )
        own = None if uid is None else f"{uid}.partial"
        env = source.env
        # Beside its input, whatever that is: what it saves is the traffic of the shuffle.
        before = source.outputs[0].node.parallelism
        early = env.add(partial, source.outputs, own, None, before)
        node = env.add(whole, (Input(early, keys=tuple(keys)),), uid, name, parallelism)
        late = Stream(env, (Input(early, LATE),), source.schema)
        return Stream(env, (Input(node),), whole.schema, {LATE: late})

    def _halves(
        self, accumulators: Mapping[str, Accumulator], expressions: Mapping[str, pl.Expr]
    ) -> tuple[Operator, WindowAggregate | SlicedAggregate | SessionAggregate]:
        """What runs before the shuffle, and after it."""
        partials = Partials(accumulators, expressions)
        if isinstance(self.window, Session):
            fragments = session_partials(accumulators, expressions)
            early = PartialSessions(list(self.keys), self.window, fragments)
            return early, SessionAggregate(self.keys, self.window, fragments, partials)
        late = horizons(self.window) if self._late is None else self._late
        partial = PartialAggregate(list(self.keys), late, partials)
        if isinstance(self.window, Tumbling) and not late.allowed:
            return partial, WindowAggregate(self.keys, self.window, partials)
        return partial, SlicedAggregate(self.keys, late, partials)

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
