"""What a method of a record function sees besides its row.

Guarantee  what a function does with its row, its states, event-time timers and event time is the
           same after any restart. `now` and processing-time timers are not: whoever uses them is
           exempt from the law of the same output.
"""

from __future__ import annotations

from typing import Any, Protocol

from engine.elements import MIN_TIME, Micros


class Effects(Protocol):
    """What carries out the wishes of a function."""

    @property
    def key(self) -> tuple[Any, ...]:
        """The values of the current key."""

    def emit(self, row: Any, tag: str) -> None:
        """Send a row to an output."""

    def set_timer(self, time: Micros, *, processing: bool) -> None:
        """Add a timer of the current key."""

    def delete_timer(self, time: Micros, *, processing: bool) -> None:
        """Remove a timer of the current key."""


class FunctionContext:
    """The surroundings of one row or timer. Valid during the call that it is given to."""

    __slots__ = ("_effects", "event_time", "now", "watermark")

    def __init__(self, effects: Effects, watermark: Micros, now: Micros) -> None:
        self._effects = effects
        self.watermark = watermark
        """No later row in time has an event time before this. In a function that takes its rows in
        order of event time: the time of the row or timer."""
        self.now = now
        """Processing time, µs: exempt from the law of the same output."""
        self.event_time: Micros | None = MIN_TIME
        """The event time of the row, the time of the timer; None on a stream without event time."""

    @property
    def key(self) -> tuple[Any, ...]:
        """The values of the key columns."""
        return self._effects.key

    def emit(self, row: Any, to: str = "main") -> None:
        """Send a row to the main output, as yielding it does, or to a declared side output."""
        self._effects.emit(row, to)

    def register_event_time_timer(self, time: int) -> None:
        """Have `on_timer(time, ctx)` called for this key when event time has reached `time`, µs.

        A key has one timer of a time, however often it is registered. One that lies in the past
        fires at once, after this row.
        """
        self._effects.set_timer(Micros(time), processing=False)

    def delete_event_time_timer(self, time: int) -> None:
        """Take an event-time timer of this key back, if there is one of this time."""
        self._effects.delete_timer(Micros(time), processing=False)

    def register_processing_time_timer(self, time: int) -> None:
        """Have `on_processing_timer(time, ctx)` called for this key when the clock has reached it.

        Exempt from the law of the same output. What is pending when the input ends does not fire.
        """
        self._effects.set_timer(Micros(time), processing=True)

    def delete_processing_time_timer(self, time: int) -> None:
        """Take a processing-time timer of this key back, if there is one of this time."""
        self._effects.delete_timer(Micros(time), processing=True)
