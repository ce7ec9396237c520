"""Does a job keep up, and by how much: one sentence out of what its batches came to. Pure.

                 rows wait longer and longer?
                   no               yes
    headroom ≥ 1.25   keeps up       held back: the source waits for something else
             ≥ 1.05   keeps up barely
             ~ 1      at full speed  falls behind

Units    delays are ms, rates rows per second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from controlplane.backends.streaming import Series, SourceBatches

FULL, BARELY = 1.05, 1.25
"""Headroom below which nothing is left, and below which little is."""
LEAST_GROWTH_MS = 500.0
"""Less is the noise of a busy machine."""
AT_THE_LIMIT = 0.95


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence, and how bad it is."""

    tone: str
    """ok, warn, crit, busy or idle."""
    glyph: str
    head: str
    rest: str


class Words(Protocol):
    """How numbers are told: the pages' own formats."""

    def length(self, ms: float) -> str:
        """A length of time."""

    def rate(self, rows: float) -> str:
        """Rows per second."""

    def times(self, value: float) -> str:
        """A factor."""


@dataclass(frozen=True, slots=True)
class Busiest:
    """The operator that has the most to do, as the collector saw it last."""

    name: str
    busy: float
    """Percent of the time of its busiest subtask."""


def verdict(source: SourceBatches, busiest: Busiest | None, words: Words) -> Verdict:
    """How a source, or a job, keeps up."""
    rate, headroom = recent_rate(source.series), recent(source.series, "headroom")
    if not source.summary.get("batches"):
        return _nothing(source)
    growth = growth_ms(source.series)
    blame = f"{busiest.name} is busy {busiest.busy:.0f} % of the time" if busiest else ""
    waits = recent(source.series, "queue_delay_ms") or 0.0
    grows = growth > max(LEAST_GROWTH_MS, 0.25 * max(0.0, waits - growth))
    if headroom is not None and headroom < FULL and grows:
        rest = f"rows wait {words.length(waits)} before they are read, {words.length(growth)} "
        rest += "longer than at the beginning of this time"
        return Verdict("crit", "failed", "Falls behind", _joined(rest, blame))
    if source.limit is not None and rate is not None and rate >= AT_THE_LIMIT * source.limit:
        rest = f"it may read {words.rate(source.limit)}, and does"
        return Verdict("busy", "starting", "Reads as much as its limit allows", rest)
    if headroom is None:
        return Verdict("idle", "queued", "Not known", "the engine tells no headroom for this time")
    if headroom < FULL:
        rest = f"rows wait {words.length(waits)} and no longer than before"
        return Verdict("warn", "degraded", "Reads as fast as it can", _joined(rest, blame))
    rest = f"{words.times(headroom)} the rows could be read in the same time"
    if grows:
        held = f"yet rows wait {words.length(waits)}, {words.length(growth)} longer than before"
        return Verdict("warn", "degraded", "Held back", _joined(f"{rest}, {held}", blame))
    if headroom < BARELY:
        return Verdict("warn", "degraded", "Keeps up, barely", _joined(rest, blame))
    return Verdict("ok", "running", "Keeps up", rest)


def recent(series: Series, name: str) -> float | None:
    """A figure over the last third of the steps, each weighing as much as its batches."""
    third = max(1, len(series["batches"]) // 3)
    return _mean(series[name][-third:], series["batches"][-third:])


def recent_rate(series: Series) -> float | None:
    """Rows per second over the last third of the steps, whether a batch ended in them or not."""
    third = max(1, len(series["rows_per_second"]) // 3)
    known = [rate for rate in series["rows_per_second"][-third:] if rate is not None]
    return sum(known) / len(known) if known else None


def growth_ms(series: Series) -> float:
    """By how much rows wait longer in the last third than in the first one."""
    third = max(1, len(series["batches"]) // 3)
    queue, batches = series["queue_delay_ms"], series["batches"]
    before, now = _mean(queue[:third], batches[:third]), _mean(queue[-third:], batches[-third:])
    return 0.0 if before is None or now is None else now - before


def _mean(values: Sequence[float | None], weights: Sequence[float | None]) -> float | None:
    pairs = [(v, w) for v, w in zip(values, weights, strict=True) if v is not None and w]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def _nothing(source: SourceBatches) -> Verdict:
    if source.limit == 0:
        rest = "its limit is 0 rows per second"
        return Verdict("warn", "suspended", "Reading is paused", rest)
    return Verdict("idle", "queued", "Nothing was read", "no batch ended in this time")


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
