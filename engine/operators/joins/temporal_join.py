"""Temporal join: each left row gets the version of its key that is valid at its event time.

    left rows   ──wait──┐                          ┌──▶ left columns, columns of the version
                        ├──watermark passes them───┤
    versions    ──wait──┘                          └──▶ the latest version of each key stays

A row of time t gets the last version with time <= t; one of the same time counts. Both wait until
event time has passed them, so neither speed nor batches nor parallelism can be seen.

Shapes   out  (left columns, right columns but for keys, event_time), where the event time is the
              left row's: a version is never later
Order    rows leave as they came, batch by batch.
Late     rows that came behind their watermark: "late" those of the left, "late_right" versions.
Cost     see `versions.py`; rows wait by reference.
Source   Flink's event-time temporal join (FOR SYSTEM_TIME AS OF).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import polars as pl

from engine.durations import format_duration
from engine.elements import EVENT_TIME, MIN_TIME, Micros
from engine.operators.contract import Context, Operator
from engine.operators.expressions import Schema, user_columns
from engine.operators.joins.join_sides import Side, as_one, in_steps, joined_schema
from engine.operators.joins.versions import Versions
from engine.operators.late import behind, set_aside
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import HeldHandle, RowsHandle
from engine.state.schema import table_schema


class TemporalJoin(Operator):
    """Joins rows (input 0) with the versions of their key (input 1)."""

    name: ClassVar[str] = "temporal_join"
    compiled: ClassVar[bool] = True

    def __init__(
        self,
        left: Side,
        right: Side,
        *,
        outer: bool = False,
        defaults: pl.DataFrame | None = None,
        ttl: Micros | None = None,
    ) -> None:
        """`outer`: keep left rows without a version, with one row of `defaults` (nulls) instead.
        `ttl`: a version counts for rows of event time < its own + ttl.
        """
        self.left = left
        self.right = right
        self.outer = outer
        self.ttl = ttl
        self._waiting = (
            left.state("waiting.left", StateKind.ROWS),
            right.state("waiting.right", StateKind.ROWS),
        )
        self._held = right.state("versions", StateKind.HELD)
        self._default = _default_row(table_schema(self._held), defaults)
        self.schema = joined_schema(left, right)

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """Rows of both sides that wait; the versions that are valid now."""
        return (*self._waiting, self._held)

    def open(self, ctx: Context) -> None:
        """Take the versions out of the state."""
        frames = self._versions_held(ctx).frames()
        held = pl.concat(frames) if frames else self._default.clear()
        self._versions = Versions(self._held, self._default, self.ttl, held, ctx.max_parallelism)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Let rows wait, but for those that are late."""
        rows = set_aside(frame, behind(frame, ctx.watermark), port, ctx)
        self._rows(ctx, port).append(rows)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Join the rows that event time has passed."""
        for until in in_steps([self._rows(ctx, port) for port in (0, 1)], time):
            self._advance(until, ctx)

    def _advance(self, time: Micros, ctx: Context) -> None:
        rows, fresh = (self._rows(ctx, port).take(time) for port in (0, 1))
        if fresh:
            self._versions.add(as_one(fresh))
        if rows:
            ctx.emit(self._joined(as_one(rows)))
        if fresh:
            self._versions.settle(time)
            self._versions_held(ctx).hold([self._versions.rows])

    def _joined(self, rows: pl.DataFrame) -> pl.DataFrame:
        times = rows.get_column(EVENT_TIME)
        found = self._versions.look_up([rows.get_column(key) for key in self.left.keys], times)
        if not self.outer:
            matched = found > 0
            if not matched.all():
                rows, found = rows.filter(matched), found[matched]
        columns = [rows.get_column(name) for name in user_columns(self.left.schema)]
        columns += [
            self._versions.column(name, found).alias(self.right.names[name])
            for name in self.right.columns
        ]
        return pl.DataFrame([*columns, rows.get_column(EVENT_TIME)])

    def _rows(self, ctx: Context, port: int) -> RowsHandle:
        return cast("RowsHandle", ctx.state(self._waiting[port]))

    def _versions_held(self, ctx: Context) -> HeldHandle:
        return cast("HeldHandle", ctx.state(self._held))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        kept = {} if self.ttl is None else {"ttl": format_duration(self.ttl)}
        return {"keys": ", ".join(self.left.keys), "how": "left" if self.outer else "inner", **kept}


def _default_row(schema: Schema, defaults: pl.DataFrame | None) -> pl.DataFrame:
    """What rows without a version get, as a row of the state."""
    given = (
        {} if defaults is None else {name: defaults.get_column(name) for name in defaults.columns}
    )
    return pl.DataFrame(
        [
            given.get(name, pl.Series([None], dtype=dtype)).alias(name)
            for name, dtype in schema.items()
        ]
    ).with_columns(pl.lit(MIN_TIME, pl.Int64).alias(EVENT_TIME))
