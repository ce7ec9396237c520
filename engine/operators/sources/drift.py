"""How far ahead of the slowest a split may be read: watermark alignment, seen from one subtask.

    lowest of the group, lowest of this subtask ──smaller one + allowance──▶ limit
    split's watermark > limit ──▶ paused, until the slowest has come closer

Units    µs of event time.
Order    whoever is slowest is never paused, so alignment cannot stand still by itself: it only
         waits for a split that has rows, or has been silent for a moment only.
Source   FLIP-182 and FLIP-217, watermark alignment of sources and of splits.
"""

from __future__ import annotations

from engine.elements import MAX_TIME, MIN_TIME, Micros
from engine.watermarks import Alignment

LEAST = Micros(60_000_000)
"""What a live job may drift for good reasons, by default: its sources are not to wait."""

BATCHES = 16
"""What the group may be ahead by default, in batches of this subtask: enough that nobody waits
for the coordinator's answer, and a bound on rows however dense they are."""

PATIENCE = Micros(1_000_000)
"""µs of processing time: a split that was silent for so long has nothing to give now, so nobody
should wait for it. Sources that form a group on purpose wait for `idle_after` instead."""

REPORTS = 8
"""Reports for each allowance: what the others know is never older than an eighth of it."""


class Drift:
    """The allowance of one subtask, and what it has told and heard of its group."""

    def __init__(self, alignment: Alignment, idle_after: Micros | None, *, shared: bool) -> None:
        """`shared`: whether other subtasks belong to the group."""
        self.patience = PATIENCE
        if idle_after is not None and (alignment.group is not None or idle_after < PATIENCE):
            self.patience = idle_after
        self.group_lowest = MIN_TIME if shared else MAX_TIME
        """As last told; of a shared group nothing is known at first."""
        self._max_drift = alignment.max_drift
        self._batch = 0
        self._told: Micros | None = None
        self._shared = shared

    @property
    def allowance(self) -> int:
        """How far a split may be ahead."""
        if self._max_drift is not None:
            return self._max_drift
        return max(LEAST, BATCHES * self._batch)

    def on_batch(self, before: Micros, after: Micros) -> None:
        """A batch took its split from one watermark to another."""
        passed = after - before if before != MIN_TIME else 0
        # One gap in the data widens the allowance for a few batches only.
        self._batch = max(passed, self._batch * 3 // 4)

    def limit(self, lowest: Micros) -> int:
        """The largest watermark with which a split is still read; `lowest`: of this subtask."""
        return min(lowest, self.group_lowest) + self.allowance

    def report(self, lowest: Micros) -> Micros | None:
        """What the coordinator has to be told, if anything."""
        if not self._shared or lowest == self._told:
            return None
        told = self._told
        near = told is not None and told <= lowest < told + self.allowance // REPORTS
        if near and MIN_TIME < lowest < MAX_TIME:
            return None
        self._told = lowest
        return lowest
