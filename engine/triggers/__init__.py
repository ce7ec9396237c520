"""Triggers: when windows give their results. `from engine import triggers`.

    event_time()                         at the end of the window, and at each late row
    count(100)                           at each hundredth row of a key and window
    continuous_event_time("10s")         every ten seconds of event time before the end, and then
    continuous_processing_time("10s")    the same by the clock
    processing_time()                    when the clock passes the end
    purging(trigger)                     drops the rows of a window when it has given a result

A trigger of your own derives from `Trigger`. What goes by processing time is exempt from the law of
the same output.

Source   Flink's triggers. Where they differ: a continuous trigger fires only when rows have come
         since its last result, and at the end of the window in either time.
"""

from __future__ import annotations

from engine.durations import Duration, positive_duration
from engine.elements import Micros
from engine.errors import GraphError
from engine.triggers.by_count import Count, Purging
from engine.triggers.by_time import Continuous, EventTime, ProcessingTime
from engine.triggers.contract import Trigger, TriggerContext, TriggerResult

__all__ = [
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "continuous_event_time",
    "continuous_processing_time",
    "count",
    "event_time",
    "processing_time",
    "purging",
]


def event_time() -> Trigger:
    """Fire when event time reaches the end of the window, and then at each late row.

    A global window ends when the input does.

    >>> str(event_time())
    'event time'
    """
    return EventTime()


def processing_time() -> Trigger:
    """Fire when the clock reaches the end of the window. Exempt from the law of the same output.

    >>> str(processing_time())
    'processing time'
    """
    return ProcessingTime()


def count(size: int) -> Trigger:
    """Fire at each `size`-th row of a key and window, in order of event time.

    Rows stay in the window: `purging(count(100))` gives each hundred by itself.

    >>> str(purging(count(100)))
    'count 100, purging'
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        msg = f"count trigger needs a positive number of rows: got {size!r}; pass e.g. count(100)"
        raise GraphError(msg)
    return Count(size)


def continuous_event_time(interval: Duration) -> Trigger:
    """Fire at each multiple of `interval` after which rows have come, and at the end.

    >>> str(continuous_event_time("10s"))
    'each 10s of event time'
    """
    return Continuous(_interval(interval, "continuous_event_time"), by_clock=False)


def continuous_processing_time(interval: Duration) -> Trigger:
    """Fire at each `interval` of the clock in which rows have come, and at the end of event time.

    Exempt from the law of the same output, but for the last result.

    >>> str(continuous_processing_time("500ms"))
    'each 500ms of processing time'
    """
    return Continuous(_interval(interval, "continuous_processing_time"), by_clock=True)


def purging(trigger: Trigger) -> Trigger:
    """Fire when another trigger does, and drop the rows then.

    >>> str(purging(event_time()))
    'event time, purging'
    """
    if not isinstance(trigger, Trigger):
        msg = f"purging needs a trigger: got {trigger!r}; pass e.g. purging(count(100))"
        raise GraphError(msg)
    return Purging(trigger)


def _interval(interval: Duration, example: str) -> Micros:
    return positive_duration(interval, "interval of a trigger", f"{example}('1s')")
