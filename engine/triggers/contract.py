"""The contract of triggers: when a window gives a result, and when its rows are dropped.

    row of the key and window ──▶ on_element ──────────┐
    timer that the trigger set ──▶ on_event_time ──────┼──▶ CONTINUE | FIRE | PURGE | FIRE_AND_PURGE
                               └─▶ on_processing_time ─┘
    sessions that a row joins ──▶ on_merge             window is over ──▶ clear

Shapes     a trigger has its states and timers per key and window. States are declared as class
           attributes, as those of functions are, and are forgotten with the window.
Guarantee  rows and event-time timers of a key come in order of event time, whatever the parallelism
           and the batches: the output is the same. What the clock decides is exempt.
Order      a row has its turn at its event time; one that came behind the watermark of its split, at
           that watermark. Rows of one turn come by event time, and then by value. A timer of time t
           comes after all rows whose turn is before t.
Source     Flink's Trigger, TriggerResult; Akidau et al., The Dataflow Model, VLDB 2015.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol, Self

from engine.elements import MAX_TIME, Micros
from engine.functions import Row, State, states_of
from engine.functions.process import bound
from engine.windows import Times


class TriggerResult(Enum):
    """What is to happen with a window."""

    CONTINUE = (False, False)
    FIRE = (True, False)
    """Give a result, and keep the rows."""
    PURGE = (False, True)
    """Drop the rows; the window and the trigger's states stay."""
    FIRE_AND_PURGE = (True, True)

    def __init__(self, fires: bool, purges: bool) -> None:
        self.fires = fires
        """Whether a result is given."""
        self.purges = purges
        """Whether the rows are dropped."""


class TriggerEffects(Protocol):
    """What carries out the wishes of a trigger."""

    def set_timer(self, time: Micros, *, processing: bool) -> None:
        """Add a timer of the current window."""

    def delete_timer(self, time: Micros, *, processing: bool) -> None:
        """Remove a timer of the current window."""

    def merge_state(self, state: State) -> None:
        """Fold the state of the merged windows into that of the current one."""


class TriggerContext:
    """The surroundings of a row or timer of one window. Valid during the call it is given to."""

    __slots__ = ("_effects", "end", "event_time", "key", "now", "start", "watermark")

    def __init__(self, effects: TriggerEffects, now: Micros) -> None:
        self._effects = effects
        self.key: tuple[Any, ...] = ()
        """The values of the key columns."""
        self.start = self.end = Micros(0)
        """The window covers [start, end), µs; a global window ends at MAX_TIME."""
        self.event_time = Micros(0)
        """The event time of the row, or the time of the timer, µs."""
        self.watermark = Micros(0)
        """How far event time is for this row or timer: its turn. The window has fired, and the row
        is late but allowed, when it has reached `end`."""
        self.now = now
        """Processing time, µs: exempt from the law of the same output."""

    @property
    def is_global(self) -> bool:
        """Whether the window has no end."""
        return self.end == MAX_TIME

    def register_event_time_timer(self, time: int) -> None:
        """Have `on_event_time` called when event time has reached `time`, µs.

        One beyond the end of the window and the allowed lateness is never called.
        """
        self._effects.set_timer(Micros(time), processing=False)

    def delete_event_time_timer(self, time: int) -> None:
        """Take a timer back, if there is one of this time."""
        self._effects.delete_timer(Micros(time), processing=False)

    def register_processing_time_timer(self, time: int) -> None:
        """Have `on_processing_time` called when the clock has reached `time`, µs, if the window is
        still there. Exempt from the law of the same output.
        """
        self._effects.set_timer(Micros(time), processing=True)

    def delete_processing_time_timer(self, time: int) -> None:
        """Take a timer back, if there is one of this time."""
        self._effects.delete_timer(Micros(time), processing=True)

    def merge_state(self, state: State) -> None:
        """In `on_merge`: fold what the merged windows have into the state of their union.

        Reducing states reduce, lists follow each other in order of their windows.
        """
        self._effects.merge_state(state)


class Trigger(ABC):
    """When a window gives a result.

    >>> from engine.functions import ValueState
    >>> class Changes(Trigger):
    ...     '''Fires when a price has moved by 5 since the last result.'''
    ...     last = ValueState(float)
    ...     def on_element(self, row, ctx):
    ...         if self.last.get() is not None and abs(row["price"] - self.last.get()) < 5:
    ...             return TriggerResult.CONTINUE
    ...         self.last.set(row["price"])
    ...         return TriggerResult.FIRE
    >>> sorted(Changes().states), Changes().can_merge
    (['last'], False)
    """

    @abstractmethod
    def on_element(self, row: Row, ctx: TriggerContext) -> TriggerResult:
        """A row has come into the window."""

    def on_event_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """Event time has reached a timer."""
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: Micros, ctx: TriggerContext) -> TriggerResult:
        """The clock has reached a timer."""
        return TriggerResult.CONTINUE

    def on_merge(self, ctx: TriggerContext) -> None:
        """Windows of which each has states and timers have become one: `ctx` is that of the union.

        Set its timers again, and merge the states. Afterwards `clear` is called for each of the
        others.
        """
        raise NotImplementedError

    def clear(self, ctx: TriggerContext) -> None:
        """The window is over. States are forgotten by themselves; timers may be taken back here."""
        return

    def on_elements(self, turns: Times, row: Row, ctx: TriggerContext) -> tuple[int, TriggerResult]:
        """Take the first of the rows at hand, or as many as make no difference to each other.

        `turns`: of the rows, in order; all come before the next timer. `row`: the first of them.
        Returns how many rows were taken, and what is to happen after the last of those.
        """
        return 1, self.on_element(row, ctx)

    @property
    def awaits_end(self) -> bool:
        """Whether rows before the end of a window do nothing but make it fire at its end: then
        sessions may grow by many rows at once.
        """
        return False

    @property
    def needs_event_time(self) -> bool:
        """Whether it makes no sense on a stream without event time."""
        return False

    @property
    def hears_clock(self) -> bool:
        """Whether it has timers of processing time."""
        return type(self).on_processing_time is not Trigger.on_processing_time

    @property
    def reads_rows(self) -> bool:
        """Whether it looks at rows at all; `row` is empty if not."""
        return type(self).on_elements is Trigger.on_elements

    @property
    def can_merge(self) -> bool:
        """Whether sessions can have this trigger."""
        return type(self).on_merge is not Trigger.on_merge

    @property
    def states(self) -> Mapping[str, State]:
        """Its states, by name."""
        return states_of(self)

    def with_states(self, states: Mapping[str, State]) -> Self:
        """A copy whose states work."""
        return bound(self, states)

    def __str__(self) -> str:
        return type(self).__name__
