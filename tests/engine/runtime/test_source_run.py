"""The source of one subtask: which split it reads, and what it says about event time."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from engine.elements import MAX_TIME, Batch, Element, EndOfInput, Idle, Micros, Watermark
from engine.operators.sources.source import (
    RETRY_AFTER,
    SHORTEST_PAUSE,
    SourceOperator,
    SourceRun,
    SplitState,
    assigned,
)
from engine.testing.memory import MemorySource
from engine.watermarks import WatermarkStrategy, bounded_out_of_orderness, monotonic

NOW = Micros(1_000_000)


def frame(*times: int) -> pl.DataFrame:
    return pl.DataFrame({"t": times}, schema={"t": pl.Int64})


def source_run(
    splits: Mapping[str, pl.DataFrame],
    *,
    strategy: WatermarkStrategy | None = monotonic("t"),  # noqa: B008
    restored: Mapping[str, SplitState] | None = None,
    every: int = 0,
    bounded: bool = True,
) -> SourceRun:
    source = MemorySource(splits, every=every, bounded=bounded)
    return SourceRun(SourceOperator(source, strategy), 0, 1, restored or {})


def read(run: SourceRun, max_rows: int = 100, now: Micros = NOW, blocked: int = 0) -> list[Element]:
    return run.poll(now, max_rows, blocked)


def times_of(elements: list[Element]) -> list[list[int]]:
    return [element.frame["t"].to_list() for element in elements if isinstance(element, Batch)]


def test_splits_go_to_subtasks_in_turn_and_each_to_one() -> None:
    ids = [f"split-{number}" for number in range(7)]
    parts = [assigned(ids, subtask, 3) for subtask in range(3)]
    assert sorted(id_ for part in parts for id_ in part) == ids
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_split_furthest_behind_is_read_first() -> None:
    run = source_run({"a": frame(10, 20, 30), "b": frame(11, 12, 13)})
    reads = [times_of(read(run, max_rows=1)) for _ in range(6)]
    assert reads == [[[10]], [[11]], [[20]], [[12]], [[13]], [[30]]]


def test_the_watermark_is_that_of_the_slowest_split_and_follows_the_rows() -> None:
    run = source_run({"a": frame(10, 20), "b": frame(11, 12)})
    assert [type(element) for element in read(run, max_rows=1)] == [Batch]
    assert read(run, max_rows=1)[1:] == [Watermark(Micros(10))]


def test_a_finished_split_holds_nobody_up() -> None:
    run = source_run({"a": frame(10), "b": frame(11, 12)})
    read(run, max_rows=1)
    assert read(run, max_rows=1)[1:] == [Watermark(Micros(11))]


def test_the_end_of_all_splits_is_the_end_of_time_and_input() -> None:
    run = source_run({"a": frame(10)})
    assert read(run)[1:] == [Watermark(MAX_TIME), EndOfInput()]
    assert read(run) == []
    assert run.again_at == MAX_TIME


def test_an_unbounded_source_without_a_split_is_idle_from_the_start() -> None:
    run = SourceRun(
        SourceOperator(MemorySource({"a": frame(1)}, bounded=False), monotonic("t")), 1, 2, {}
    )
    assert read(run) == [Idle()]
    assert read(run) == []


def test_a_bounded_source_without_a_split_ends_at_once() -> None:
    run = SourceRun(SourceOperator(MemorySource({"a": frame(1)}), monotonic("t")), 1, 2, {})
    assert read(run) == [Watermark(MAX_TIME), EndOfInput()]


def test_a_source_without_event_time_says_so_by_being_idle() -> None:
    run = source_run({"a": frame(1, 2)}, strategy=None)
    first, second = read(run, max_rows=1)
    assert isinstance(first, Batch)
    assert first.frame.columns == ["t"]
    assert second == Idle()
    assert read(run, max_rows=1)[1:] == [Watermark(MAX_TIME), EndOfInput()]


def silent(idle_after: int) -> SourceRun:
    """Two splits that have read their only row: the slower one holds event time at 5."""
    run = source_run(
        {"a": frame(5), "b": frame(9)},
        strategy=monotonic("t", idle_after=idle_after),
        bounded=False,
    )
    assert times_of([*read(run), *read(run)]) == [[5], [9]]
    return run


def test_silent_splits_are_set_aside_after_the_timeout_and_not_before() -> None:
    run = silent(idle_after=1_000)
    assert read(run, now=NOW) == []
    assert read(run, now=Micros(NOW + 999)) == []
    assert read(run, now=Micros(NOW + 1_000)) == [Idle()]
    assert [state.idle for state in run.splits.values()] == [True, True]


def test_time_in_which_the_outputs_were_full_is_no_silence() -> None:
    run = silent(idle_after=1_000)
    read(run, now=NOW)
    assert read(run, now=Micros(NOW + 5_000), blocked=4_500) == []
    assert read(run, now=Micros(NOW + 5_500)) == [Idle()]


def test_the_time_of_a_restore_is_no_silence() -> None:
    strategy = monotonic("t", idle_after=1_000)
    first = source_run({"a": frame(5)}, strategy=strategy, bounded=False)
    assert read(first)[1:] == [Watermark(Micros(5))]
    assert read(first) == []
    later = Micros(NOW + 60_000_000)
    again = source_run({"a": frame(5)}, strategy=strategy, bounded=False, restored=first.splits)
    assert read(again, now=later) == [Watermark(Micros(5))]
    assert read(again, now=Micros(later + 999)) == []
    assert read(again, now=Micros(later + 1_000)) == [Idle()]


def test_a_split_with_nothing_to_give_is_not_asked_in_a_busy_loop() -> None:
    run = silent(idle_after=1_000_000)
    read(run)
    assert run.again_at == NOW + RETRY_AFTER


@pytest.mark.parametrize(("due", "asked"), [(3, SHORTEST_PAUSE), (7_000, 7_000)])
def test_a_split_is_asked_when_it_wants_but_not_for_every_row(due: int, asked: int) -> None:
    run = source_run({"a": frame(1, 2)}, every=NOW + due)
    read(run)
    read(run)
    assert run.again_at == NOW + asked


def test_a_split_that_gave_rows_is_asked_at_once_unless_it_wants_to_wait() -> None:
    run = source_run({"a": frame(1, 2, 3, 4)}, every=NOW // 2)
    read(run, max_rows=1)
    assert run.again_at < NOW
    read(run, max_rows=2)
    assert read(run, now=Micros(NOW + 5)) == []
    assert run.again_at == 3 * NOW // 2


def test_a_split_goes_on_where_its_snapshot_says() -> None:
    splits = {"a": frame(10, 20, 15), "b": frame(11, 12, 13)}
    first = source_run(splits)
    for _ in range(3):
        read(first, max_rows=1)
    states = first.splits
    again = source_run(splits, restored=states)
    assert again.splits == states
    rest: list[Element] = []
    while not again.ended:
        rest += read(again, max_rows=1)
    assert sorted(time for times in times_of(rest) for time in times) == [12, 13, 15]
    late = [element.frame for element in rest if isinstance(element, Batch)]
    assert [frame["row_watermark"].to_list() for frame in late if "row_watermark" in frame] == [
        [20]
    ]


def test_a_restored_source_says_its_watermark_again_before_new_rows() -> None:
    states = {"a": SplitState(1, Micros(10))}
    run = source_run({"a": frame(10, 20)}, restored=states, every=2_000_000, bounded=False)
    assert read(run) == [Watermark(Micros(10))]


def test_the_newest_event_time_is_known_through_a_restore() -> None:
    strategy = bounded_out_of_orderness(5, "t")
    run = source_run({"a": frame(10, 30, 20), "b": frame(11)}, strategy=strategy, bounded=False)
    assert run.newest is None
    read(run)
    read(run)
    assert run.newest == 30
    again = source_run({"a": frame(), "b": frame()}, strategy=strategy, restored=run.splits)
    assert again.newest == 30


def test_a_finished_split_stays_finished() -> None:
    states = {"a": SplitState(1, Micros(10), finished=True)}
    run = source_run({"a": frame(10)}, restored=states)
    assert read(run) == [Watermark(MAX_TIME), EndOfInput()]
    assert run.splits == states


def test_pending_rows_add_up_over_splits() -> None:
    run = source_run({"a": frame(1, 2, 3), "b": frame(4, 5)})
    assert run.pending_rows is None
    read(run, max_rows=1)
    read(run, max_rows=1)
    assert run.pending_rows == 3
