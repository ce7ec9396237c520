"""What all calls of the operator have in common, what is due at one, and what fires.

event time ──due_events──▶ (time, timer | end of life, pane), …
a trigger fires ──▶ Firing: a pane, its content, and how far event time was
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from engine.elements import MAX_TIME, Micros
from engine.operators.contract import Context
from engine.operators.windows.rows.assign import AnyWindow
from engine.state.contract import StateDescriptor
from engine.state.handles import Key, TimersHandle
from engine.triggers import Trigger

TIMER, END_OF_LIFE = 0, 1

MOST_DUE = 10_000
"""So many windows fire at once, or all of one time: the rows of those are in memory together."""

Due = tuple[int, int, Key]
"""When something is due, whether a timer or the end of a window's life, and of which pane."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What all turns of an operator have in common."""

    window: AnyWindow
    allowed: Micros
    trigger: Trigger
    step: str
    """The operator, for messages."""
    columns: Sequence[str]
    """Those of the stream."""
    states: Mapping[str, StateDescriptor]
    """Those of the trigger."""
    event_timers: StateDescriptor
    processing_timers: StateDescriptor | None
    """None for a trigger that does not hear the clock."""
    lives: StateDescriptor
    """Timers at the end of each window and the allowed lateness; a window without one is over."""
    sessions: StateDescriptor

    def life(self, pane: Key) -> int:
        """When the window is over."""
        return MAX_TIME if pane[-1] == MAX_TIME else pane[-1] + self.allowed


@dataclass(frozen=True, slots=True)
class Firing:
    """A result that is due."""

    at: int
    """How far event time was."""
    by_row: bool
    pane: Key
    content: Any


def clock(setup: Setup, ctx: Context) -> TimersHandle | None:
    """Timers of processing time; None when the trigger does not hear the clock."""
    timers = setup.processing_timers
    return None if timers is None else cast("TimersHandle", ctx.state(timers))


def reach_of_timers(setup: Setup, until: Micros, ctx: Context) -> Micros:
    """The last time up to `until` at which not too many windows fire at once."""
    first = cast("TimersHandle", ctx.state(setup.event_timers)).due(until, MOST_DUE)
    return first[-1][0] if len(first) == MOST_DUE else until


def due_events(setup: Setup, until: Micros, ctx: Context) -> list[Due]:
    """Everything that is due when event time has reached `until`."""
    timers = cast("TimersHandle", ctx.state(setup.event_timers)).due(until)
    over = cast("TimersHandle", ctx.state(setup.lives)).due(until)
    return [
        *((int(time), TIMER, pane) for time, pane in timers),
        *((int(time), END_OF_LIFE, pane) for time, pane in over),
    ]
