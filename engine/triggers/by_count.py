"""Triggers that count rows, and the one that drops them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from operator import add
from typing import Self

from engine.elements import Micros
from engine.functions import ReducingState, Row, State
from engine.triggers.contract import Trigger, TriggerContext, TriggerResult
from engine.windows import Times


class Count(Trigger):
    """Fires when so many rows have come since it fired last."""

    count = ReducingState(int, add)

    def __init__(self, size: int) -> None:
        self.size = size

    def on_element(self, row: Row, ctx: TriggerContext) -> TriggerResult:
        """Count one row."""
        return self._counted(1)

    def on_elements(self, turns: Times, row: Row, ctx: TriggerContext) -> tuple[int, TriggerResult]:
        """Count as many as are missing."""
        taken = max(1, min(len(turns), self.size - (self.count.get() or 0)))
        return taken, self._counted(taken)

    def _counted(self, rows: int) -> TriggerResult:
        self.count.add(rows)
        if (self.count.get() or 0) < self.size:
            return TriggerResult.CONTINUE
        self.count.clear()
        return TriggerResult.FIRE

    def on_merge(self, ctx: TriggerContext) -> None:
        """The rows of all."""
        ctx.merge_state(self.count)

    def __str__(self) -> str:
        return f"count {self.size}"


class Purging(Trigger):
    """Drops the rows whenever another trigger fires."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger

    def on_element(self, row: Row, ctx: TriggerContext) -> TriggerResult:
        """As the other."""
        return _purging(self.trigger.on_element(row, ctx))

    def on_elements(self, turns: Times, row: Row, ctx: TriggerContext) -> tuple[int, TriggerResult]:
        """As the other."""
        taken, outcome = self.trigger.on_elements(turns, row, ctx)
        return taken, _purging(outcome)

    def on_event_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """As the other."""
        return _purging(self.trigger.on_event_time(time, ctx))

    def on_processing_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """As the other."""
        return _purging(self.trigger.on_processing_time(time, ctx))

    def on_merge(self, ctx: TriggerContext) -> None:
        """As the other."""
        self.trigger.on_merge(ctx)

    def clear(self, ctx: TriggerContext) -> None:
        """As the other."""
        self.trigger.clear(ctx)

    @property
    def awaits_end(self) -> bool:
        """As the other."""
        return self.trigger.awaits_end

    @property
    def needs_event_time(self) -> bool:
        """As the other."""
        return self.trigger.needs_event_time

    @property
    def hears_clock(self) -> bool:
        """As the other."""
        return self.trigger.hears_clock

    @property
    def reads_rows(self) -> bool:
        """As the other."""
        return self.trigger.reads_rows

    @property
    def can_merge(self) -> bool:
        """As the other."""
        return self.trigger.can_merge

    @property
    def states(self) -> Mapping[str, State]:
        """Those of the other."""
        return self.trigger.states

    def with_states(self, states: Mapping[str, State]) -> Self:
        """A copy of both."""
        made = copy(self)
        made.trigger = self.trigger.with_states(states)
        return made

    def __str__(self) -> str:
        return f"{self.trigger}, purging"


def _purging(outcome: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if outcome.fires else outcome
