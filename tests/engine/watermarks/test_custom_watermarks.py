"""Watermarks that an author makes, row by row."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elements import MAX_TIME, MIN_TIME, ROW_WATERMARK, Batch, Micros, Watermark
from engine.errors import ConfigError, FunctionError
from engine.operators.sources.source import SourceOperator, SourceRun
from engine.testing.memory import MemorySource
from engine.testing.watermark_conformance import check_watermark_generator
from engine.watermarks import SplitWatermarks, WatermarkGenerator, custom_watermarks

Row = tuple[int, str]


def frame(*rows: Row) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"t": pl.Int64, "kind": pl.String}, orient="row")


def ends(rows: pl.DataFrame) -> pl.Series:
    """Marker rows promise that nothing before them follows."""
    return rows.select(pl.when(pl.col("kind") == "end").then("event_time")).to_series()


class EveryThird(WatermarkGenerator):
    """Each third row of the split promises its own time: it has to count over batches."""

    def __init__(self) -> None:
        self._seen = 0

    def on_rows(self, rows: pl.DataFrame) -> pl.Series:
        number = pl.int_range(self._seen, self._seen + rows.height)
        self._seen += rows.height
        return rows.select(pl.when(number % 3 == 2).then("event_time")).to_series()

    @property
    def state(self) -> Any:
        return self._seen

    def restore(self, state: Any) -> None:
        self._seen = state


class PerBatch(WatermarkGenerator):
    """Wrong: promises the largest time of a batch for all of its rows."""

    def on_rows(self, rows: pl.DataFrame) -> pl.Series:
        return rows.select(pl.col("event_time").max().repeat_by(pl.len()).explode()).to_series()


class Forgetful(EveryThird):
    """Wrong: what it counts is in no snapshot."""

    @property
    def state(self) -> Any:
        return None


MARKED = frame((5, "row"), (7, "end"), (6, "row"), (9, "row"), (8, "row"), (9, "end"), (8, "row"))


def test_a_row_is_judged_by_the_promises_of_the_rows_before_it() -> None:
    split = SplitWatermarks(custom_watermarks(ends, column="t"))
    stamped = split.stamp(MARKED)
    assert stamped[ROW_WATERMARK].to_list() == [None, None, 7, None, None, None, 9]
    assert (split.watermark, split.newest) == (9, 9)


def test_a_promise_ahead_of_its_own_row_does_not_make_that_row_late() -> None:
    ahead = custom_watermarks(lambda rows: rows["event_time"] + 10, column="t")
    stamped = SplitWatermarks(ahead).stamp(frame((0, ""), (5, ""), (20, "")))
    assert stamped[ROW_WATERMARK].to_list() == [None, 10, None]


def test_a_generator_that_has_promised_nothing_lets_no_time_pass() -> None:
    split = SplitWatermarks(custom_watermarks(lambda rows: pl.Series([None] * len(rows)), "t"))
    split.stamp(MARKED)
    assert split.watermark == MIN_TIME


def test_a_generator_may_give_datetimes() -> None:
    times = custom_watermarks(lambda rows: rows["t"].cast(pl.Datetime("ms")), column="t")
    split = SplitWatermarks(times)
    split.stamp(frame((7, "")))
    assert split.watermark == 7_000


rows_of_a_split = st.lists(
    st.tuples(st.integers(-20, 20), st.sampled_from(["row", "end"])), min_size=1, max_size=20
)


@settings(max_examples=30, deadline=None)
@given(rows_of_a_split)
def test_functions_and_generators_with_state_are_cut_anywhere(rows: list[Row]) -> None:
    check_watermark_generator(custom_watermarks(ends, column="t"), frame(*rows))
    check_watermark_generator(custom_watermarks(EveryThird(), column="t"), frame(*rows))


@settings(max_examples=30, deadline=None)
@given(rows_of_a_split)
def test_the_marks_are_those_of_a_model(rows: list[Row]) -> None:
    promised: int | None = None
    wanted: list[int | None] = []
    for time, kind in rows:
        wanted.append(promised if promised is not None and time < promised else None)
        if kind == "end":
            promised = time if promised is None else max(promised, time)
    stamped = SplitWatermarks(custom_watermarks(ends, column="t")).stamp(frame(*rows))
    nothing = [None] * len(rows)
    found = stamped[ROW_WATERMARK].to_list() if ROW_WATERMARK in stamped.columns else nothing
    assert found == wanted


@pytest.mark.parametrize(
    ("generator", "sentence"),
    [(PerBatch(), "rows differ in batches of"), (Forgetful(), "with a restore after each")],
)
def test_the_suite_finds_generators_that_depend_on_batches_or_forget(
    generator: WatermarkGenerator, sentence: str
) -> None:
    rows = frame(*((at if at % 2 else at - 5, "row") for at in range(20)))
    with pytest.raises(AssertionError, match=sentence):
        check_watermark_generator(custom_watermarks(generator, column="t"), rows)


def test_every_split_has_a_generator_of_its_own_which_a_snapshot_remembers() -> None:
    rows = {"a": frame((1, ""), (2, ""), (3, ""), (4, "")), "b": frame((9, ""), (9, ""))}
    operator = SourceOperator(MemorySource(rows), custom_watermarks(EveryThird(), column="t"))
    first = SourceRun(operator, 0, 1, {})
    for _ in range(4):
        first.poll(Micros(0), 1, 0)
    states = first.splits
    assert sorted((id_, state.generator) for id_, state in states.items()) == [("a", 2), ("b", 2)]
    again = SourceRun(operator, 0, 1, states)
    elements = [*again.poll(Micros(0), 1, 0), *again.poll(Micros(0), 1, 0)]
    assert [element.time for element in elements if isinstance(element, Watermark)] == [3, MAX_TIME]
    assert sum(isinstance(element, Batch) for element in elements) == 2


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            lambda rows: rows["nothing"],
            "raised ColumnNotFoundError: .*: first row of the batch .*fix it",
        ),
        (
            lambda rows: rows["t"].head(1),
            "does not fit its rows: got 1 values for 7 rows; return a Series",
        ),
        (lambda rows: rows, "does not fit its rows: got DataFrame for 7 rows"),
        (lambda rows: rows["t"].cast(pl.Float64), "does not give times: got Float64; return Date"),
    ],
)
def test_what_a_generator_must_give_is_said_in_one_sentence(function: Any, sentence: str) -> None:
    split = SplitWatermarks(custom_watermarks(function, column="t"))
    with pytest.raises(FunctionError, match=f"watermark generator '<lambda>' {sentence}"):
        split.stamp(MARKED)


def test_a_class_is_no_generator() -> None:
    with pytest.raises(ConfigError, match=r"neither an object nor a function: got <class .*Third"):
        custom_watermarks(EveryThird, column="t")  # type: ignore[arg-type]
