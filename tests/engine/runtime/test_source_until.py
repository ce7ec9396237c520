"""A source that ends at a moment: which row of a split is the last, and where it stands then."""

from __future__ import annotations

import polars as pl
import pytest

from engine.elements import MAX_TIME, Batch, Element, EndOfInput, Micros, Watermark
from engine.operators.sources.source import SourceOperator, SourceRun, SplitState
from engine.testing.memory import MemorySource
from engine.watermarks import bounded_out_of_orderness, custom_watermarks, monotonic

NOW = Micros(1_000_000)
TIMES = [10, 20, 15, 30, 12, 40]


def source_run(until: int, *, strategy=monotonic("t"), restored=None, bounded=False):  # noqa: B008
    frame = pl.DataFrame({"t": TIMES}, schema={"t": pl.Int64})
    operator = SourceOperator(MemorySource({"a": frame}, bounded=bounded), strategy)
    operator.until = Micros(until)
    return SourceRun(operator, 0, 1, restored or {})


def read_all(run: SourceRun, max_rows: int) -> list[Element]:
    return [element for _ in range(10) for element in run.poll(NOW, max_rows, 0)]


def rows_of(elements: list[Element]) -> list[int]:
    return [row for one in elements if isinstance(one, Batch) for row in one.frame["t"].to_list()]


@pytest.mark.parametrize("max_rows", [1, 2, 3, 4, 100])
@pytest.mark.parametrize(("until", "rows"), [(20, 2), (21, 4), (30, 4), (40, 6)])
def test_the_last_row_is_the_same_in_batches_of_any_size(until, rows, max_rows):
    run = source_run(until)
    elements = read_all(run, max_rows)
    assert rows_of(elements) == TIMES[:rows]
    assert elements[-2:] == [Watermark(MAX_TIME), EndOfInput()]
    assert run.splits["a"].position == rows


def test_a_later_job_goes_on_with_the_next_row():
    ended = source_run(30)
    read_all(ended, 100)
    state = ended.splits["a"]
    assert (state.watermark, state.finished) == (30, False)
    assert rows_of(read_all(source_run(40, restored={"a": state}), 100)) == TIMES[4:]


def test_a_split_that_was_there_before_is_not_read():
    restored = {"a": SplitState(2, Micros(20))}
    run = source_run(20, restored=restored)
    assert read_all(run, 100) == [Watermark(MAX_TIME), EndOfInput()]


def test_a_split_that_ends_before_ends_as_ever():
    run = source_run(1_000, bounded=True)
    assert rows_of(read_all(run, 100)) == TIMES
    assert run.splits["a"].finished


@pytest.mark.parametrize("max_rows", [1, 100])
def test_the_bound_and_generators_of_authors_count(max_rows):
    bounded = bounded_out_of_orderness(10, column="t")
    assert rows_of(read_all(source_run(20, strategy=bounded), max_rows)) == TIMES[:4]
    every_third = custom_watermarks(
        lambda rows: rows.select(pl.when(pl.col("t") >= 30).then("t")).to_series(), column="t"
    )
    assert rows_of(read_all(source_run(5, strategy=every_third), max_rows)) == TIMES[:4]
