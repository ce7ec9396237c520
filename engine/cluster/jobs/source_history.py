"""The last hour of the sources of one job, second by second: streaming statistics.

    reports of workers ──on_report──▶ one ring of an hour per source ──statistics──▶ figures

A ring has a line per second; a line holds sums and maxima, so that memory is bounded however many
batches there are, and any two lines can be put together.

Guarantee  kept over restarts of the job, not over those of the job manager.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from engine.graph.plan import Plan
from engine.rest.model.statistics import (
    BatchFigures,
    Delay,
    SourceStatistics,
    StreamingStatistics,
)
from engine.runtime.control import Metrics
from engine.runtime.source_batches import BatchSums

KEPT_S = 3_600
MINUTE_S = 60

REPORTED_S = 1
"""The last full second is left out: not every worker has told of it yet."""

_SUMS = slice(1, 5)
"""Columns of a line: the second, four sums, three maxima, and the load plus one."""
_MAXIMA = slice(5, 9)
_LOAD = 8
_COLUMNS = 9
assert len(astuple(BatchSums())) == _LOAD - 1

FULL = 1_000
"""ms per second."""

Lines = NDArray[np.int64]


class SourceHistory:
    """The hour of one source."""

    def __init__(self) -> None:
        # Minute by minute, as they come: most jobs of many are short, and remembered for long.
        self._minutes: dict[int, Lines] = {}

    def add(self, second: int, sums: Sequence[int] = (0,) * 7, load: int | None = None) -> None:
        """Take what one subtask says of a second, or how busy a subtask was in it, of 1,000."""
        minute, place = divmod(second % KEPT_S, MINUTE_S)
        if minute not in self._minutes:
            self._minutes[minute] = np.zeros((MINUTE_S, _COLUMNS), np.int64)
        line = self._minutes[minute][place]
        if line[0] > second:
            return  # it is older than an hour
        if line[0] < second:
            line[:] = 0
            line[0] = second
        line[_SUMS] += sums[:4]
        found = [*sums[4:], 0 if load is None else load + 1]
        np.maximum(line[_MAXIMA], found, out=line[_MAXIMA])

    def lines(self, first: int, end: int) -> Lines:
        """The lines of the seconds [first, end), zeros where nothing is known."""
        seconds = np.arange(first, end)
        ring: Lines = np.zeros((KEPT_S, _COLUMNS), np.int64)
        for minute, known in self._minutes.items():
            ring[minute * MINUTE_S : (minute + 1) * MINUTE_S] = known
        lines = ring[seconds % KEPT_S]
        lines[lines[:, 0] != seconds] = 0
        return lines


@dataclass(frozen=True, slots=True)
class _Read:
    """A source, and the vertices that its rows pass."""

    uid: str
    name: str
    vertex: str
    passed: frozenset[str]
    history: SourceHistory


class JobStatistics:
    """Every source of one job."""

    def __init__(self, plan: Plan) -> None:
        self._sources = [
            _Read(
                vertex.operators[0].uid,
                vertex.operators[0].name,
                vertex.id,
                behind(vertex.id, plan),
                SourceHistory(),
            )
            for vertex in plan.sources
        ]

    def on_report(self, report: Metrics, second: int) -> None:
        """A worker has told its numbers; `second`: of the epoch, now."""
        busy: dict[str, int] = defaultdict(int)
        for task, numbers in report.subtasks.items():
            vertex = task.partition("/")[0]
            busy[vertex] = max(busy[vertex], int(numbers.get("busyTimeMsPerSecond", 0)))
        for source in self._sources:
            for task, seconds in report.batches.items():
                if task.partition("/")[0] == source.vertex:
                    for at, sums in seconds.items():
                        source.history.add(int(at), sums)
            loads = [load for vertex, load in busy.items() if vertex in source.passed]
            if loads:
                source.history.add(second, load=max(loads))

    def statistics(self, now_s: int, window_s: int, step_s: int) -> StreamingStatistics:
        """Figures of the last `window_s` seconds, a whole number of steps of `step_s`."""
        end = now_s - REPORTED_S
        first = end - window_s
        found = [(source, source.history.lines(first, end)) for source in self._sources]
        return StreamingStatistics(
            from_ms=first * 1000,
            to_ms=end * 1000,
            step_s=step_s,
            job=_statistics(together([lines for _, lines in found]), step_s),
            sources=tuple(_statistics(lines, step_s, source) for source, lines in found),
        )


def behind(vertex: str, plan: Plan) -> frozenset[str]:
    """A vertex, and all that its rows pass."""
    passed, next_ = set[str](), {vertex}
    while next_:
        passed |= next_
        next_ = {edge.target for edge in plan.edges if edge.source in next_} - passed
    return frozenset(passed)


def together(all_lines: Iterable[Lines]) -> Lines:
    """The lines of several sources as one."""
    sources = np.stack(list(all_lines))
    return np.concatenate(
        (sources[:, :, :1].max(0), sources[:, :, _SUMS].sum(0), sources[:, :, _MAXIMA].max(0)), 1
    )


def _statistics(lines: Lines, step_s: int, source: _Read | None = None) -> SourceStatistics:
    names = (None,) * 3 if source is None else (source.uid, source.name, source.vertex)
    (summary,) = figures(lines[np.newaxis])
    return SourceStatistics(summary, figures(lines.reshape(-1, step_s, _COLUMNS)), *names)


def figures(steps: Lines) -> tuple[BatchFigures, ...]:
    """What batches came to, step by step; `steps`: lines by step and second of the step."""
    sums, largest = steps[:, :, _SUMS].sum(1).tolist(), steps[:, :, _MAXIMA].max(1).tolist()
    reported = (steps[:, :, _LOAD] > 0).sum(1)
    loads = (steps[:, :, _LOAD].sum(1) - reported) / np.maximum(reported, 1)
    seconds = steps.shape[1]
    return tuple(
        _figures(*of_step, seconds, load if known else None)
        for of_step, load, known in zip(
            zip(sums, largest, strict=True), loads.tolist(), reported.tolist(), strict=True
        )
    )


def _figures(
    sums: Sequence[int], largest: Sequence[int], seconds: int, load: float | None
) -> BatchFigures:
    batches, rows, queue, processing = sums
    queue_max, processing_max, total_max, _ = largest
    return BatchFigures(
        batches,
        rows,
        rows / seconds,
        _delay(queue, queue_max, batches),
        _delay(processing, processing_max, batches),
        _delay(queue + processing, total_max, batches),
        FULL / max(load, 1.0) if rows and load is not None else None,
    )


def _delay(total_us: int, most_us: int, batches: int) -> Delay | None:
    return Delay(total_us / batches / 1000, most_us / 1000) if batches else None
