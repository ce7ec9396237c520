"""Interval join: rows of two streams meet when the right one is within a range of time of the left.

    left t:   ──────[t + lower ──── t ──── t + upper]──────▶ right rows of its key in there

Rows wait until event time has passed them, meet what the other side holds, and are held themselves
until no later row can meet them. Both bounds belong to the range.

Shapes   out  (left columns, right columns but for keys, event_time); the event time is that of the
              later row. In a left join a row that meets none has nulls for the right, and the end
              of its range as event time, at which that is certain
Order    results leave when event time has passed them, within that in no particular order.
Late     a row that came behind its watermark still meets rows at or after that; it is late when no
         such row is in its range: "late" those of the left, "late_right" those of the right.
Cost     see `held_rows.py`; the state holds the rows of as much time as the range is long.
Source   Flink's interval join, which gives late rows up at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.durations import format_duration
from engine.elements import EVENT_TIME, MIN_TIME, Micros
from engine.frames import kept, without
from engine.kernels import KeySlots
from engine.operators.contract import Context, Operator
from engine.operators.expressions import user_columns
from engine.operators.joins.held_rows import HeldRows, Places, Run
from engine.operators.joins.join_sides import Side, as_one, in_steps, joined_schema
from engine.operators.late import row_marks, set_aside
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import HeldHandle, RowsHandle

MARK = "join.mark"
"""The watermark that a row came behind; null for those in time."""

_SLACK = 1_024
"""So many keys may be known that no row has any more, even when there are few."""


class IntervalJoin(Operator):
    """Joins rows (input 0) with those of input 1 that are near in time."""

    name: ClassVar[str] = "interval_join"
    compiled: ClassVar[bool] = True

    def __init__(
        self, left: Side, right: Side, lower: Micros, upper: Micros, *, outer: bool = False
    ) -> None:
        """`outer`: give left rows that meet none, too."""
        self.left = left
        self.right = right
        self.lower = lower
        self.upper = upper
        self.outer = outer
        self._sides = (left, right)
        # How long after its time a row may meet one that comes then.
        self._reach = (max(upper, 0), max(-lower, 0))
        # How long it is held: a right row also until the left ones are judged that it has met.
        self._hold = (self._reach[0], self._reach[0] - lower if outer else self._reach[1])
        mark = {MARK: pl.Int64()}
        names = ("left", "right")
        self._waiting = tuple(
            side.state(f"waiting.{name}", StateKind.ROWS, mark)
            for name, side in zip(names, self._sides, strict=True)
        )
        self._kept = tuple(
            side.state(f"held.{name}", StateKind.HELD, mark)
            for name, side in zip(names, self._sides, strict=True)
        )
        self.schema = joined_schema(left, right)

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """Rows of both sides that wait, and those that are held."""
        return (*self._waiting, *self._kept)

    def open(self, ctx: Context) -> None:
        """Take the held rows out of the state."""
        self._reached = ctx.watermark
        self._slots = KeySlots(self.left.keys, ctx.max_parallelism)
        self._load([self._handle(ctx, port).frames() for port in (0, 1)])

    def _load(self, held: Sequence[Sequence[pl.DataFrame]]) -> None:
        self._slots.clear()
        self._held = tuple(
            HeldRows(side.keys, self._slots, as_one(frames) if frames else None)
            for side, frames in zip(self._sides, held, strict=True)
        )

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Let rows wait, but for those that are late."""
        times = frame.get_column(EVENT_TIME).to_numpy()
        marks = row_marks(frame, ctx.watermark)
        if marks is None:
            marks = np.full_like(times, ctx.watermark)
        behind = pl.Series(times < marks)
        late = times + self._reach[port] < marks
        nulls = pl.Series([None], dtype=pl.Int64).new_from_index(0, frame.height)
        frame = frame.hstack([pl.Series(MARK, marks).zip_with(behind, nulls)])
        if late.any():
            set_aside(without(frame, (MARK,)), pl.Series(late), port, ctx)
            frame = kept(frame, pl.Series(~late))
        self._rows(ctx, port).append(frame)

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        """Join the rows that event time has passed, and forget those that can meet no other."""
        for until in in_steps([self._rows(ctx, port) for port in (0, 1)], time):
            self._advance(until, ctx)

    def _advance(self, time: Micros, ctx: Context) -> None:
        since, self._reached = self._reached, time
        taken = [self._rows(ctx, port).take(time) for port in (0, 1)]
        left, right = (
            held.run(as_one(frames)) if frames else None
            for held, frames in zip(self._held, taken, strict=True)
        )
        for result in self._results(left, right):
            ctx.emit(result)
        for held, run in zip(self._held, (left, right), strict=True):
            if run is not None:
                held.add(run)
        if self.outer:
            ctx.emit(self._alone(since, time))
        self._expire(time, ctx)

    def _results(self, left: Run | None, right: Run | None) -> Iterator[pl.DataFrame]:
        """What fresh rows give: with each other, and with what the other side holds."""
        ours, theirs = self._held
        fresh = [] if right is None else [right]
        for run in [] if left is None else [*theirs.runs, *fresh]:
            for mine, its in cast("Run", left).meet(run, self.lower, self.upper):
                yield self._joined(cast("Run", left), mine, run, its)
        for other in fresh:
            for run in ours.runs:
                for its, mine in other.meet(run, -self.upper, -self.lower):
                    yield self._joined(run, mine, other, its)

    def _joined(self, left: Run, mine: Places, right: Run, its: Places) -> pl.DataFrame:
        """The results of some pairs."""
        valid = _in_time(left, mine, right, its)
        if not valid.all():
            mine, its = mine[valid], its[valid]
        rows = self._of_left(left.rows[mine])
        others = right.rows.select(self.right.columns)[its].rename(dict(self.right.names))
        times = np.maximum(left.times[mine], right.times[its])
        return pl.DataFrame([*rows, *others, pl.Series(EVENT_TIME, times)])

    def _alone(self, since: int, until: int) -> pl.DataFrame:
        """The left rows that have met none, and whose range event time has passed since then."""
        reach = self._reach[0]
        frames = [pl.DataFrame(schema=self.schema)]
        for run in self._held[0].runs:
            judged = (run.times + reach >= since) & (run.times + reach < until)
            if not judged.any():
                continue
            rows = run.only(judged)
            alone = rows.rows.filter(pl.Series(~self._met(rows)))
            times = alone.get_column(EVENT_TIME) + reach
            frames.append(pl.DataFrame([*self._of_left(alone), times]))
        return pl.concat(frames, how="diagonal")

    def _met(self, rows: Run) -> npt.NDArray[np.bool_]:
        met = np.zeros(rows.rows.height, dtype=np.bool_)
        for other in self._held[1].runs:
            for mine, its in rows.meet(other, self.lower, self.upper):
                met[mine[_in_time(rows, mine, other, its)]] = True
        return met

    def _of_left(self, rows: pl.DataFrame) -> list[pl.Series]:
        return [rows.get_column(name) for name in user_columns(self.left.schema)]

    def _expire(self, time: int, ctx: Context) -> None:
        """Keep in the state what is held from now on."""
        for port, held in enumerate(self._held):
            held.expire(time - self._hold[port])
            self._handle(ctx, port).hold([run.rows for run in held.runs])
        if len(self._slots) > 2 * sum(held.height for held in self._held) + _SLACK:
            self._load([self._handle(ctx, port).frames() for port in (0, 1)])

    def _rows(self, ctx: Context, port: int) -> RowsHandle:
        return cast("RowsHandle", ctx.state(self._waiting[port]))

    def _handle(self, ctx: Context, port: int) -> HeldHandle:
        return cast("HeldHandle", ctx.state(self._kept[port]))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        bounds = f"{_signed(self.lower)} to {_signed(self.upper)}"
        how = "left" if self.outer else "inner"
        return {"keys": ", ".join(self.left.keys), "between": bounds, "how": how}


def _signed(bound: int) -> str:
    return f"{'-' if bound < 0 else ''}{format_duration(abs(bound))}"


def _in_time(left: Run, mine: Places, right: Run, its: Places) -> npt.NDArray[np.bool_]:
    """Which pairs are not before the watermark that one of their rows came behind."""
    times = np.maximum(left.times[mine], right.times[its])
    valid = np.ones(len(times), dtype=np.bool_)
    for run, places in ((left, mine), (right, its)):
        marks = run.rows.get_column(MARK)
        if marks.count():
            valid &= times >= marks.fill_null(MIN_TIME).to_numpy()[places]
    return valid
