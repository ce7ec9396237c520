"""Joins of keyed streams: rows of two streams that have one key, and are close in event time.

    window_join     in one window                            clicks and orders of the same hour
    interval_join   some time before or after each other     an order, and the clicks before it
    temporal_join   the version that is valid at the time    a price in the currency of its day

All of them wait for event time, so that neither speed nor parallelism decides what meets what.

Shapes   results have the columns of the left, those of the right but for its keys, and
         `event_time`. A right column that the left has too gets a `suffix`.
Needs    event time on both sides; both hold each other up until their watermarks go on: give a
         stream that is often silent `idle_after`.
Errors   GraphError at the line of the job file that is wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from engine.durations import Duration
from engine.errors import GraphError
from engine.graph.logical import Input
from engine.operators.contract import Operator
from engine.operators.joins.interval_join import MARK, IntervalJoin
from engine.operators.joins.temporal_join import TemporalJoin
from engine.operators.joins.versions import NUMBER
from engine.operators.joins.window_join import COUNTS_FROM, How, WindowJoin
from engine.operators.late import LATE_TAGS
from engine.operators.windows.window_aggregate import WINDOW_END, WINDOW_START
from engine.state.contract import SLICE_END
from engine.stream.join_checks import (
    checked_bounds,
    checked_defaults,
    checked_how,
    checked_sides,
    checked_ttl,
)
from engine.stream.record_steps import Options
from engine.stream.stream import Stream
from engine.windows import Session, SlicedWindows

if TYPE_CHECKING:
    from engine.stream.keyed import KeyedStream

_WINDOW_COLUMNS = (WINDOW_START, WINDOW_END, SLICE_END, COUNTS_FROM)


class KeyedJoins(ABC):
    """The joins of a keyed stream."""

    stream: Stream
    keys: tuple[str, ...]

    @property
    @abstractmethod
    def key_types(self) -> dict[str, pl.DataType]:
        """The key columns with their types."""

    @abstractmethod
    def partitioned(self, uid: str | None, role: str, port: int = 0) -> tuple[Input, ...]:
        """Stamp key groups, and give the inputs of the operator that is to get the rows."""

    def window_join(
        self,
        right: KeyedStream,
        window: SlicedWindows,
        *,
        how: str = "inner",
        suffix: str | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Join rows of one key that lie in one window, when event time has passed it.

        `how`: inner, left, right or full. Adds `window_start` and `window_end`; `event_time` is the
        window's last microsecond. Side outputs: "late" and "late_right", rows that came after their
        last window. Raises GraphError.

        >>> import engine as hw
        >>> from engine.connectors.generator import SensorGenerator
        >>> env, times = hw.Environment("sensors"), hw.monotonic("time")
        >>> rows = env.source(SensorGenerator(rate=1), watermarks=times).key_by("sensor")
        >>> joined = rows.window_join(rows, hw.windows.tumbling("1h"), suffix="_right")
        >>> list(joined.schema)[3:]
        ['time_right', 'value_right', 'window_start', 'window_end', 'event_time']
        """
        if isinstance(window, Session) or not isinstance(window, SlicedWindows):
            msg = (
                f"window_join cannot take window {window}: sessions of two streams differ; "
                "pass a tumbling, sliding or cumulative window, or use interval_join"
            )
            raise GraphError(msg)
        kind = checked_how("window_join", how, [each.value for each in How])
        left, other = checked_sides("window_join", self, right, suffix, _WINDOW_COLUMNS)
        operator = WindowJoin(left, other, window, How(kind))
        return _joined(self, right, operator, operator.schema, (uid, name, parallelism))

    def interval_join(
        self,
        right: KeyedStream,
        *,
        lower: Duration,
        upper: Duration,
        how: str = "inner",
        suffix: str | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Join each row with those of the right from `lower` to `upper` after it, both included.

        A negative length is before it. `event_time` is that of the later row. `how`: inner, or left
        to keep rows that meet none, with nulls, once event time has passed their range. Side
        outputs: "late" and "late_right", rows that came after all they could meet. Raises
        GraphError.

        >>> import engine as hw
        >>> from engine.connectors.generator import SensorGenerator
        >>> env, times = hw.Environment("sensors"), hw.monotonic("time")
        >>> rows = env.source(SensorGenerator(rate=1), watermarks=times).key_by("sensor")
        >>> list(rows.interval_join(rows, lower="-5m", upper=0, suffix="_before").schema)
        ['sensor', 'time', 'value', 'time_before', 'value_before', 'event_time']
        """
        outer = checked_how("interval_join", how, ["inner", "left"]) == "left"
        low, high = checked_bounds(lower, upper)
        left, other = checked_sides("interval_join", self, right, suffix, (MARK,))
        operator = IntervalJoin(left, other, low, high, outer=outer)
        return _joined(self, right, operator, operator.schema, (uid, name, parallelism))

    def temporal_join(
        self,
        versions: KeyedStream,
        *,
        how: str = "inner",
        defaults: Mapping[str, object] | None = None,
        ttl: Duration | None = None,
        suffix: str | None = None,
        uid: str | None = None,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> Stream:
        """Give each row the version of its key that is valid at its event time.

        That is the last one with a time up to the row's; of two versions with one time the one that
        is larger by its columns, from left to right. `how`: inner, or left to keep rows that find
        none, with `defaults` by column, else nulls. `ttl`: how long a version is valid at most.
        Side outputs: "late" and "late_right", rows and versions that came behind their watermark.
        Raises GraphError.

        >>> import engine as hw
        >>> from engine.connectors.generator import SensorGenerator
        >>> env, times = hw.Environment("sensors"), hw.monotonic("time")
        >>> rows = env.source(SensorGenerator(rate=1), watermarks=times).key_by("sensor")
        >>> factors = rows.stream.select("sensor", factor=pl.col("value").round())
        >>> factors = factors.key_by("sensor")
        >>> list(rows.temporal_join(factors, how="left", defaults={"factor": 1.0}).schema)
        ['sensor', 'time', 'value', 'factor', 'event_time']
        """
        outer = checked_how("temporal_join", how, ["inner", "left"]) == "left"
        left, right = checked_sides("temporal_join", self, versions, suffix, (NUMBER,))
        operator = TemporalJoin(
            left,
            right,
            outer=outer,
            defaults=checked_defaults(right, defaults, outer=outer),
            ttl=checked_ttl(ttl),
        )
        return _joined(self, versions, operator, operator.schema, (uid, name, parallelism))


def _joined(
    left: KeyedJoins,
    right: KeyedJoins,
    operator: Operator,
    schema: Mapping[str, pl.DataType],
    options: Options,
) -> Stream:
    """Bring rows of both sides to the operator, by their keys."""
    uid, name, parallelism = options
    env = left.stream.env
    inputs = (*left.partitioned(uid, "left"), *right.partitioned(uid, "right", port=1))
    node = env.add(operator, inputs, uid, name, parallelism)
    late = {
        tag: Stream(env, (Input(node, tag),), side.stream.schema)
        for tag, side in zip(LATE_TAGS, (left, right), strict=True)
    }
    return Stream(env, (Input(node),), schema, late)
