"""Splits that are too far ahead are not read: alignment within a subtask, and with others."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from engine.elements import MAX_TIME, MIN_TIME, Batch, Element, Idle, Micros, Watermark
from engine.errors import ConfigError
from engine.operators.sources.drift import BATCHES, LEAST, PATIENCE, REPORTS, Drift
from engine.operators.sources.source import SourceOperator, SourceRun
from engine.testing.memory import MemorySource
from engine.watermarks import Alignment, WatermarkStrategy, monotonic

NOW = Micros(1_000_000)
ALIGNED = monotonic("t").aligned("all", max_drift=80)


def frame(*times: int) -> pl.DataFrame:
    return pl.DataFrame({"t": times}, schema={"t": pl.Int64})


def run_of(
    splits: Mapping[str, pl.DataFrame],
    strategy: WatermarkStrategy = ALIGNED,
    *,
    shared: bool = False,
    every: int = 0,
    bounded: bool = True,
) -> SourceRun:
    source = MemorySource(splits, every=every, bounded=bounded)
    return SourceRun(SourceOperator(source, strategy), 0, 1, {}, shared=shared)


def read(run: SourceRun, now: int = NOW, blocked: int = 0) -> list[int | str]:
    """One row at most, then names of what else was said."""
    return [_shown(element) for element in run.poll(Micros(now), 1, blocked)]


def _shown(element: Element) -> int | str:
    match element:
        case Batch(rows):
            return int(rows["t"][0])
        case Watermark(time):
            return f"W{time}"
    return type(element).__name__


def test_a_subtask_reads_on_until_it_is_too_far_ahead_of_its_group() -> None:
    run = run_of({"a": frame(0, 50, 80, 81, 90)}, shared=True, bounded=False)
    assert read(run) == [0, "W0"]
    assert read(run) == []
    assert run.again_at == MAX_TIME
    assert run.align(Micros(0))
    assert [read(run) for _ in range(4)] == [[50, "W50"], [80, "W80"], [81, "W81"], []]
    assert run.align(Micros(10))
    assert read(run) == [90, "W90"]


def test_the_slowest_is_never_paused() -> None:
    run = run_of({"a": frame(0, 1_000, 2_000)}, shared=True, bounded=False)
    read(run)
    run.align(Micros(0))
    assert read(run) == [1_000, "W1000"]
    run.align(Micros(1_000))
    assert read(run) == [2_000, "W2000"]


def test_what_it_reports_is_never_older_than_an_eighth_of_the_drift() -> None:
    run = run_of({"a": frame(*range(0, 70, 5))}, shared=True)
    reports = []
    run.align(Micros(0))
    for _ in range(13):
        read(run)
        reports.append(run.report)
    assert [report for report in reports if report is not None] == list(range(0, 65, 80 // REPORTS))


def test_a_subtask_that_has_ended_or_has_no_splits_holds_nobody_up() -> None:
    run = run_of({"a": frame(5)}, shared=True)
    read(run)
    assert run.report == MAX_TIME
    empty = SourceRun(
        SourceOperator(MemorySource({"a": frame(5)}, bounded=False), ALIGNED), 1, 2, {}, shared=True
    )
    read(empty)
    assert empty.report == MAX_TIME


def test_splits_that_waited_for_one_that_has_ended_are_read_at_once() -> None:
    run = run_of({"a": frame(0, 10), "b": frame(1_000, 2_000)})
    said: list[int | str] = []
    while not run.ended and run.again_at <= NOW:  # as a worker does: it sleeps until then
        said += read(run)
    assert said == [0, 1_000, "W0", 10, "W1000", 2_000, f"W{MAX_TIME}", "EndOfInput"]


def silent_and_busy(strategy: WatermarkStrategy) -> SourceRun:
    """Split a has one row, and falls silent; b goes on far ahead of it."""
    run = run_of({"a": frame(0), "b": frame(10, 1_000, 2_000)}, strategy, bounded=False)
    assert [read(run), read(run), read(run)] == [[0], [10, "W0"], [1_000]]
    assert read(run) == []
    return run


def test_a_split_waits_for_a_silent_one_for_a_moment_only() -> None:
    run = silent_and_busy(ALIGNED)
    assert read(run, NOW + PATIENCE - 1) == []
    assert run.again_at <= NOW + PATIENCE
    assert read(run, NOW + PATIENCE) == [2_000]


def test_a_group_made_on_purpose_waits_until_the_silent_one_is_idle() -> None:
    longer = 3 * PATIENCE
    run = silent_and_busy(monotonic("t", idle_after=longer).aligned("all", max_drift=80))
    assert read(run, NOW + 2 * PATIENCE) == []
    assert run.again_at <= NOW + longer
    assert read(run, NOW + longer) == [2_000, "W2000"]


def test_time_in_which_outputs_were_full_is_no_silence_either() -> None:
    run = silent_and_busy(ALIGNED)
    assert read(run, NOW + 2 * PATIENCE, blocked=PATIENCE + 1) == []
    assert run.again_at <= NOW + 2 * PATIENCE + 1


def test_a_paused_split_does_not_become_idle() -> None:
    strategy = monotonic("t", idle_after=1_000).aligned("all", max_drift=80)
    run = run_of({"a": frame(500)}, strategy, shared=True, bounded=False)
    run.align(Micros(500))
    read(run)
    read(run)  # it has nothing to give: its silence begins
    run.align(Micros(0))
    assert [read(run, NOW + wait) for wait in (500, 5_000, 50_000)] == [[], [], []]
    run.align(Micros(500))
    assert read(run, NOW + 60_000) == []
    assert read(run, NOW + 60_999) == []
    assert read(run, NOW + 61_000) == ["Idle"]


def test_without_event_time_or_alignment_nobody_waits() -> None:
    rows = frame(0, 10**9, 10**12)
    for strategy in (monotonic("t").unaligned(), None):
        run = SourceRun(SourceOperator(MemorySource({"a": rows}), strategy), 0, 1, {}, shared=True)
        times = [element for _ in range(3) for element in read(run) if isinstance(element, int)]
        assert times == rows["t"].to_list()
        assert run.report is None
        assert not run.align(Micros(0))


def test_the_distance_from_the_slowest_is_known() -> None:
    run = run_of({"a": frame(0, 70), "b": frame(30)}, shared=True, bounded=False)
    assert run.ahead is None
    for _ in range(2):
        read(run)
    assert run.ahead is None
    run.align(Micros(-20))
    read(run)
    assert run.ahead == 90


def test_by_default_a_split_may_be_some_batches_ahead_but_a_minute_at_least() -> None:
    drift = Drift(Alignment(), None, shared=False)
    assert drift.allowance == LEAST
    drift.on_batch(MIN_TIME, Micros(10**15))
    assert drift.allowance == LEAST
    drift.on_batch(Micros(0), Micros(LEAST))
    assert drift.allowance == BATCHES * LEAST
    for _ in range(20):
        drift.on_batch(Micros(0), Micros(1_000))
    assert drift.allowance == LEAST


def test_alignment_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_drift must be positive: got '0s'"):
        monotonic("t").aligned("all", max_drift="0s")
    with pytest.raises(ConfigError, match="group has no name"):
        monotonic("t").aligned(" ")


def test_an_idle_source_says_so_once() -> None:
    run = run_of({"a": frame()}, monotonic("t", idle_after=5), bounded=False)
    assert run.poll(NOW, 1, 0) == []
    assert run.poll(Micros(NOW + 5), 1, 0) == [Idle()]
