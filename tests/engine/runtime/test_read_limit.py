"""A limit of reading: how many rows a second, and that it changes nothing else."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elements import MAX_TIME, Batch, Idle, Micros
from engine.operators.sources.read_limit import FULL_S, MICROS, ReadLimit
from engine.operators.sources.source import SourceOperator, SourceRun
from engine.testing.memory import MemorySource
from engine.watermarks import monotonic

SECOND = MICROS
RATES = st.sampled_from([None, 0, 1, 7, 100])
STRATEGY = monotonic("t", idle_after="1s")


def frame(*times: int) -> pl.DataFrame:
    return pl.DataFrame({"t": times}, schema={"t": pl.Int64})


def source_run(splits: dict[str, pl.DataFrame], bounded: bool = True) -> SourceRun:
    return SourceRun(SourceOperator(MemorySource(splits, bounded=bounded), STRATEGY), 0, 1, {})


def run_until(run: SourceRun, now: int, end: int, max_rows: int = 100) -> tuple[list[int], list]:
    """Poll whenever the run wants it; return when rows were read, and everything else said."""
    read: list[int] = []
    said: list = []
    while now < end:
        for element in run.poll(Micros(now), max_rows, 0):
            if isinstance(element, Batch):
                read += [now] * element.frame.height
            else:
                said.append((now, element))
        now = max(now + 1, run.again_at)
    return read, said


@settings(max_examples=40)
@given(st.floats(0.5, 1e6), st.integers(1, 500), st.lists(st.integers(0, 300_000), max_size=20))
def test_never_more_than_the_rate_and_one_bucket_over_any_stretch(rate, max_rows, pauses):
    limit, now, reads = ReadLimit(), Micros(0), []
    limit.set(rate, now)
    for pause in pauses:
        rows = limit.rows(now, max_rows)
        limit.spend(rows)
        reads.append((now, rows))
        now = Micros(now + pause)
    bucket = max(1.0, rate * FULL_S)
    for first in range(len(reads)):
        for last in range(first, len(reads)):
            passed = (reads[last][0] - reads[first][0]) / MICROS
            assert sum(rows for _, rows in reads[first : last + 1]) <= rate * passed + bucket + 1e-6


@pytest.mark.parametrize(("rate", "max_rows"), [(3, 100), (1_000, 100), (50_000, 16_384)])
def test_a_source_that_has_rows_is_read_at_the_limit(rate, max_rows):
    run = source_run({"a": frame(*range(200_000))})
    run.limit(rate, 1, Micros(0))
    read, _ = run_until(run, 0, 3 * SECOND, max_rows)
    assert len(read) == pytest.approx(3 * rate, abs=max(1, rate * FULL_S))


def test_it_is_shared_by_the_subtasks_that_have_splits_and_still_read():
    splits = {name: frame(*range(5_000)) for name in ("a", "b")}
    operator = SourceOperator(MemorySource(splits), STRATEGY)
    first, second, without = (SourceRun(operator, subtask, 3, {}) for subtask in range(3))
    for run in (first, second, without):
        run.limit(1_000, 3, Micros(0))
    assert [len(run_until(run, 0, SECOND)[0]) for run in (first, second)] == [
        pytest.approx(500, abs=50)
    ] * 2
    first.limit(1_000, 1, Micros(SECOND))  # the others have read all they had
    assert len(run_until(first, SECOND, 2 * SECOND)[0]) == pytest.approx(1_000, abs=100)


def test_with_a_limit_of_nothing_a_source_sleeps_until_there_is_another():
    run = source_run({"a": frame(*range(100))})
    for nothing in (0, 5e-324):
        run.limit(nothing, 1, Micros(0))
        assert run.poll(Micros(0), 10, 0) == []
        assert run.again_at == MAX_TIME
    run.limit(None, 1, Micros(SECOND))
    assert isinstance(run.poll(Micros(SECOND), 10, 0)[0], Batch)


def test_a_split_that_waits_for_the_limit_is_not_idle():
    run = source_run({"a": frame(*range(10)), "b": frame(*range(10))}, bounded=False)
    run.limit(1, 1, Micros(0))
    _, said = run_until(run, 0, 15 * SECOND)
    assert not any(isinstance(element, Idle) for _, element in said)


def test_a_pause_of_an_hour_makes_nobody_idle_who_was_not_asked_since():
    source = MemorySource({"a": frame(10, 20, 30), "b": frame(100)}, every=SECOND, bounded=False)
    run = SourceRun(SourceOperator(source, STRATEGY), 0, 1, {})
    for _ in range(3):
        run.poll(Micros(0), 1, 0)  # 10, then 100, then both have nothing
    half, hour = SECOND // 2, 3_600 * SECOND
    run.limit(0, 1, Micros(half))
    run.poll(Micros(half), 1, 0)
    run.limit(None, 1, Micros(hour))
    (batch, _) = run.poll(Micros(hour), 1, 0)
    assert isinstance(batch, Batch)  # of "a", so that "b" was not asked
    assert not any(split.idle for split in run.splits.values())


def test_an_empty_split_still_becomes_idle_beside_one_that_takes_all_of_the_limit():
    run = source_run({"a": frame(*range(10_000)), "b": frame()}, bounded=False)
    run.limit(100, 1, Micros(0))
    run_until(run, 0, 3 * SECOND)
    assert run.splits["b"].idle


@pytest.mark.parametrize("speed", [1.0, 60.0, 86_400.0])
@pytest.mark.parametrize("apart", [1_000, SECOND, 3_600 * SECOND])
def test_event_time_passes_at_the_multiple_of_real_time_and_no_faster(speed, apart):
    run = source_run({"a": frame(*range(0, 20_000 * apart, apart)), "b": frame(*range(0, 1, 1))})
    run.limit(None, 1, Micros(0), speed)
    now, end = 0, 60 * SECOND
    while now < end and not run.ended:
        run.poll(Micros(now), 16_384, 0)
        came = max(0, run.splits["a"].watermark)
        assert came <= speed * (now + FULL_S * SECOND) + 3 * apart
        now = max(now + 1, run.again_at)
    if now >= end and apart <= speed * SECOND / 4:
        assert came >= min(speed * end * 0.9, 19_999 * apart)


def test_a_gap_that_was_read_is_waited_for_and_a_change_forgets_it():
    hour = 3_600 * SECOND
    run = source_run({"a": frame(0, hour, hour + 1)})
    run.limit(None, 1, Micros(0), 60.0)
    read, _ = run_until(run, 0, 30 * SECOND, max_rows=1)
    assert len(read) == 2
    assert run.again_at == pytest.approx(60 * SECOND, abs=SECOND)
    run.limit(None, 1, Micros(30 * SECOND))
    assert isinstance(run.poll(Micros(30 * SECOND), 1, 0)[0], Batch)


def rows_by_split(changes: list[tuple[int, float | None, float | None]]) -> dict[str, list[dict]]:
    """Everything that a source gives while its limit changes: (µs of waiting, rate, speed)."""
    times = {"a": (5, 1, 9, 2, 30, 8, 31), "b": (6, 6, 1, 40, 3, 2, 41)}
    splits = {name: frame(*of).with_columns(split=pl.lit(name)) for name, of in times.items()}
    run, now, given = source_run(splits), 0, []
    for waiting, rate, speed in [*changes, (0, None, None)]:
        run.limit(rate, 1, Micros(now), speed)
        for _ in range(3):
            given += [e.frame for e in run.poll(Micros(now), 2, 0) if isinstance(e, Batch)]
            now += waiting
    while not run.ended:
        given += [e.frame for e in run.poll(Micros(now), 2, 0) if isinstance(e, Batch)]
    rows = pl.concat(given, how="diagonal")
    return {name: rows.filter(split=name).to_dicts() for name in times}


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2 * SECOND),
            st.sampled_from([None, 0, 1, 7, 100]),
            st.sampled_from([None, 1e-6, 1.0]),
        ),
        max_size=6,
    )
)
def test_no_limit_changes_a_row_or_how_late_it_is(changes):
    assert rows_by_split(changes) == rows_by_split([])
