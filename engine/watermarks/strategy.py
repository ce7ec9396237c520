"""Watermark strategies: which column is event time, and how far rows may come out of order."""

from __future__ import annotations

from dataclasses import dataclass

from engine.durations import Duration, format_duration, parse_duration
from engine.elements import Micros
from engine.errors import ConfigError
from engine.watermarks.times import UNITS


@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """Which column is event time, and how far rows may come out of order."""

    column: str
    bound: Micros
    idle_after: Micros | None = None
    unit: str = "us"
    """Unit of an integer column."""

    def __str__(self) -> str:
        return f"{self.column}, at most {format_duration(self.bound)} out of order"


def bounded_out_of_orderness(
    bound: Duration, column: str, idle_after: Duration | None = None, unit: str = "us"
) -> WatermarkStrategy:
    """Expect rows at most `bound` behind the latest one of their split.

    >>> bounded_out_of_orderness("500ms", column="time").bound
    500000
    """
    if unit not in (*UNITS, "ns"):
        msg = f"unit of event time is not known: got {unit!r}; use one of s, ms, us, ns"
        raise ConfigError(msg)
    bound_us = parse_duration(bound, "bound of out-of-orderness")
    if bound_us < 0:
        msg = f"bound of out-of-orderness is negative: got {bound!r}; pass 0 or more"
        raise ConfigError(msg)
    idle_us = None if idle_after is None else parse_duration(idle_after, "idle_after")
    if idle_us is not None and idle_us <= 0:
        msg = f"idle_after must be positive: got {idle_after!r}; pass e.g. '1m', or leave it out"
        raise ConfigError(msg)
    return WatermarkStrategy(column, bound_us, idle_us, unit)


def monotonic(
    column: str, idle_after: Duration | None = None, unit: str = "us"
) -> WatermarkStrategy:
    """Expect the rows of each split in order of event time."""
    return bounded_out_of_orderness(0, column, idle_after, unit)
