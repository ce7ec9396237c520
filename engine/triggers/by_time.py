"""Triggers that go by time: at the end of a window, and again and again before it."""

from __future__ import annotations

import numpy as np

from engine.durations import format_duration
from engine.elements import Micros
from engine.functions import ReducingState, Row
from engine.triggers.contract import Trigger, TriggerContext, TriggerResult
from engine.windows import Times


class EventTime(Trigger):
    """Fires when event time reaches the end, and for late rows: at each, or gathered by `every`."""

    def __init__(self, every: Micros | None = None) -> None:
        self.every = every

    def on_element(self, row: Row, ctx: TriggerContext) -> TriggerResult:
        """Wait for the end, or for the next update after it."""
        if ctx.watermark >= ctx.end and self.every is None:
            return TriggerResult.FIRE
        ctx.register_event_time_timer(self._next(ctx))
        return TriggerResult.CONTINUE

    def on_elements(self, turns: Times, row: Row, ctx: TriggerContext) -> tuple[int, TriggerResult]:
        """All rows before the next result are alike."""
        outcome = self.on_element(row, ctx)
        return 1 if outcome.fires else _before(turns, self._next(ctx)), outcome

    def _next(self, ctx: TriggerContext) -> int:
        if ctx.watermark < ctx.end or self.every is None:
            return ctx.end
        return ctx.end + (ctx.watermark - ctx.end) // self.every * self.every + self.every

    def on_event_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """The end, or an update."""
        return TriggerResult.FIRE

    def on_merge(self, ctx: TriggerContext) -> None:
        """Nothing: the row that joins the sessions comes next, and sets the timer."""
        return

    def clear(self, ctx: TriggerContext) -> None:
        """Wait no longer."""
        ctx.delete_event_time_timer(ctx.end)

    @property
    def awaits_end(self) -> bool:
        """That is all it does."""
        return True

    def __str__(self) -> str:
        return "event time"


class ProcessingTime(Trigger):
    """Fires when the clock reaches the end."""

    def on_element(self, row: Row, ctx: TriggerContext) -> TriggerResult:
        """Wait for the clock."""
        ctx.register_processing_time_timer(ctx.end)
        return TriggerResult.CONTINUE

    def on_elements(self, turns: Times, row: Row, ctx: TriggerContext) -> tuple[int, TriggerResult]:
        """All rows are alike."""
        return len(turns), self.on_element(row, ctx)

    def on_processing_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """The end."""
        return TriggerResult.FIRE

    def on_merge(self, ctx: TriggerContext) -> None:
        """Nothing: the row that joins the sessions comes next, and sets the timer."""
        return

    def clear(self, ctx: TriggerContext) -> None:
        """Wait no longer."""
        ctx.delete_processing_time_timer(ctx.end)

    def __str__(self) -> str:
        return "processing time"


class Continuous(Trigger):
    """Fires at each multiple of an interval after which rows have come, and at the end.

    `by_clock`: whether the interval is one of processing time; the end is one of event time anyway.
    """

    next = ReducingState(int, min)
    """When it fires next, if rows have come since it fired last."""

    def __init__(self, interval: Micros, *, by_clock: bool) -> None:
        self.interval = interval
        self.by_clock = by_clock

    def on_element(self, row: Row, ctx: TriggerContext) -> TriggerResult:
        """Fire soon; at once when the end is over."""
        if ctx.watermark >= ctx.end:
            return TriggerResult.FIRE
        ctx.register_event_time_timer(ctx.end)
        if self.next.get() is None:
            time = ctx.now if self.by_clock else ctx.watermark
            self.next.add(time // self.interval * self.interval + self.interval)
            self._expect(ctx)
        return TriggerResult.CONTINUE

    def on_elements(self, turns: Times, row: Row, ctx: TriggerContext) -> tuple[int, TriggerResult]:
        """All rows before the next result are alike."""
        outcome = self.on_element(row, ctx)
        if outcome.fires:
            return 1, outcome
        until = self.next.get()
        return _before(turns, ctx.end if self.by_clock or until is None else until), outcome

    def on_event_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """The end, or an interval of event time."""
        if time != ctx.end:
            return self._fire(time)
        self.clear(ctx)
        self.next.clear()
        return TriggerResult.FIRE

    def on_processing_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """An interval of processing time."""
        return self._fire(time)

    @property
    def hears_clock(self) -> bool:
        """When its intervals are those of the clock."""
        return self.by_clock

    @property
    def needs_event_time(self) -> bool:
        """By event time: there are no intervals of what does not pass."""
        return not self.by_clock

    def _fire(self, time: Micros) -> TriggerResult:
        if self.next.get() != time:
            return TriggerResult.CONTINUE
        self.next.clear()
        return TriggerResult.FIRE

    def on_merge(self, ctx: TriggerContext) -> None:
        """Go on with the interval that comes first."""
        ctx.merge_state(self.next)
        self._expect(ctx)

    def _expect(self, ctx: TriggerContext) -> None:
        time = self.next.get()
        if time is None:
            return
        if self.by_clock:
            ctx.register_processing_time_timer(time)
        elif time < ctx.end:  # else the end comes first
            ctx.register_event_time_timer(time)

    def clear(self, ctx: TriggerContext) -> None:
        """Wait no longer."""
        ctx.delete_event_time_timer(ctx.end)
        time = self.next.get()
        if time is None:
            return
        if self.by_clock:
            ctx.delete_processing_time_timer(time)
        else:
            ctx.delete_event_time_timer(time)

    def __str__(self) -> str:
        domain = "processing time" if self.by_clock else "event time"
        return f"each {format_duration(self.interval)} of {domain}"


def _before(turns: Times, time: int) -> int:
    """How many of the rows come before a time; the first of them does."""
    return max(1, int(np.searchsorted(turns, time)))
