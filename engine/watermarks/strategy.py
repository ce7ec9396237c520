"""Watermark strategies: which column is event time, and how far rows may come out of order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.durations import Duration, format_duration, parse_duration, positive_duration
from engine.elements import Micros
from engine.errors import ConfigError
from engine.watermarks.generators import (
    FunctionGenerator,
    WatermarkGenerator,
    Watermarks,
    named,
)
from engine.watermarks.times import UNITS


@dataclass(frozen=True, slots=True)
class Alignment:
    """Who waits for whom: no split of a group is read while it is too far ahead of the slowest."""

    group: str | None = None
    """Sources with the same name wait for each other; None: the splits of one source do."""
    max_drift: Micros | None = None
    """Event time that a split may be ahead; None: as much as some batches hold."""

    def __str__(self) -> str:
        drift = "some batches" if self.max_drift is None else format_duration(self.max_drift)
        return f"{self.group or 'its splits'}, at most {drift} ahead"


@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """Which column is event time, and how far rows may come out of order."""

    column: str
    bound: Micros
    """How far rows may be out of order; 0 with a generator, which decides for itself."""
    idle_after: Micros | None = None
    unit: str = "us"
    """Unit of an integer column."""
    alignment: Alignment | None = Alignment()
    """None: every split is read as fast as it can be."""
    generator: WatermarkGenerator | None = None
    """The author's own; copied for each split."""

    def aligned(self, group: str, max_drift: Duration | None = None) -> WatermarkStrategy:
        """Have all sources of `group` wait for the one furthest behind.

        A source that may fall silent needs `idle_after`: until then the others wait for it.

        >>> monotonic("time").aligned("readings", max_drift="1h").alignment
        Alignment(group='readings', max_drift=3600000000)
        """
        if not group.strip():
            msg = f"alignment group has no name: got {group!r}; pass e.g. aligned('readings')"
            raise ConfigError(msg)
        drift = None
        if max_drift is not None:
            drift = positive_duration(max_drift, "max_drift", "'1h', or leave it out", ConfigError)
        return replace(self, alignment=Alignment(group, drift))

    def unaligned(self) -> WatermarkStrategy:
        """Have no split wait for another: as fast as it can be, whatever the windows then hold."""
        return replace(self, alignment=None)

    def __str__(self) -> str:
        if self.generator is not None:
            return f"{self.column}, watermarks by {named(self.generator)}"
        return f"{self.column}, at most {format_duration(self.bound)} out of order"


def bounded_out_of_orderness(
    bound: Duration, column: str, idle_after: Duration | None = None, unit: str = "us"
) -> WatermarkStrategy:
    """Expect rows at most `bound` behind the latest one of their split.

    >>> bounded_out_of_orderness("500ms", column="time").bound
    500000
    """
    bound_us = parse_duration(bound, "bound of out-of-orderness")
    if bound_us < 0:
        msg = f"bound of out-of-orderness is negative: got {bound!r}; pass 0 or more"
        raise ConfigError(msg)
    return WatermarkStrategy(column, bound_us, _idle(idle_after), _unit(unit))


def monotonic(
    column: str, idle_after: Duration | None = None, unit: str = "us"
) -> WatermarkStrategy:
    """Expect the rows of each split in order of event time."""
    return bounded_out_of_orderness(0, column, idle_after, unit)


def custom_watermarks(
    generator: WatermarkGenerator | Watermarks,
    column: str,
    idle_after: Duration | None = None,
    unit: str = "us",
) -> WatermarkStrategy:
    """Expect what a generator promises: its own object for each split, or a function of the rows.

    >>> import polars as pl
    >>> ends = lambda rows: rows.select(pl.when("ends_hour").then("event_time")).to_series()
    >>> str(custom_watermarks(ends, column="time"))
    "time, watermarks by '<lambda>'"
    """
    if not isinstance(generator, WatermarkGenerator):
        if isinstance(generator, type) or not callable(generator):
            msg = (
                f"watermark generator is neither an object nor a function: got {generator!r}; "
                "pass e.g. MyGenerator(), or a function from the rows to a Series"
            )
            raise ConfigError(msg)
        generator = FunctionGenerator(generator)
    return WatermarkStrategy(column, Micros(0), _idle(idle_after), _unit(unit), generator=generator)


def _idle(idle_after: Duration | None) -> Micros | None:
    if idle_after is None:
        return None
    return positive_duration(idle_after, "idle_after", "'1m', or leave it out", ConfigError)


def _unit(unit: str) -> str:
    if unit not in (*UNITS, "ns"):
        msg = f"unit of event time is not known: got {unit!r}; use one of s, ms, us, ns"
        raise ConfigError(msg)
    return unit
