"""Operators without state: rows pass or change, reserved columns stay."""

from __future__ import annotations

import sys

import polars as pl
import pytest

from engine.errors import FunctionError
from engine.operators.columns.explode import Explode
from engine.operators.columns.filter import Filter
from engine.operators.columns.key_by import KeyBy
from engine.operators.columns.map_batches import MapBatches
from engine.operators.columns.project import Project
from engine.operators.columns.split import Split
from engine.operators.records.records import FilterRows, FlatMapRows, MapRows
from engine.testing.harness import OperatorHarness

ROWS = {"a": [1, 2, 3], "event_time": [10, 20, 30], "row_watermark": [None, 25, 25]}
SCHEMA = {"a": pl.Int64(), "event_time": pl.Int64()}


def sent_through(operator):
    harness = OperatorHarness(operator)
    harness.push(pl.DataFrame(ROWS))
    return pl.concat(harness.frames["main"]).to_dict(as_series=False) if harness.frames else None


def test_a_filter_keeps_rows_that_are_true_and_no_nulls():
    predicate = pl.when(pl.col("a") > 1).then(pl.col("a") > 2)
    assert sent_through(Filter(predicate)) == {
        "a": [3],
        "event_time": [30],
        "row_watermark": [25],
    }


def test_a_filter_that_keeps_nothing_sends_nothing():
    assert sent_through(Filter(pl.col("a") > 9)) is None


def test_a_filter_whose_values_do_not_fit_shows_the_row():
    with pytest.raises(FunctionError, match=r"filter failed.*'a': 1"):
        sent_through(Filter(pl.lit("x").cast(pl.Int64) == pl.col("a")))


def test_a_filter_of_all_columns_does_not_look_at_hidden_ones():
    assert sent_through(Filter(pl.all_horizontal(pl.all().is_not_null())))["a"] == [1, 2, 3]


def test_a_list_is_exploded_with_the_reserved_columns_of_its_row():
    harness = OperatorHarness(Explode(["tags", "n"]))
    tags = pl.Series([["x", "y"], [], None])
    rows = pl.DataFrame(ROWS).with_columns(tags.alias("tags"), pl.Series("n", [[1, 2], [], None]))
    harness.push(rows)
    assert pl.concat(harness.frames["main"]).to_dict(as_series=False) == {
        "a": [1, 1, 3],
        "event_time": [10, 10, 30],
        "row_watermark": [None, None, 25],
        "tags": ["x", "y", None],
        "n": [1, 2, None],
    }


def test_lists_of_unequal_length_are_one_sentence_with_the_row():
    harness = OperatorHarness(Explode(["a", "b"]))
    with pytest.raises(FunctionError, match=r"explode failed: .*first row of the batch \{'a'"):
        harness.push([{"a": [1, 2], "b": [1]}])


def test_a_split_sends_each_row_to_the_first_side_output_that_wants_it():
    operator = Split(
        {"two": pl.col("a") == 2, "small": pl.col("a") < 3, "none": pl.lit(value=False)}
    )
    harness = OperatorHarness(operator)
    harness.push(pl.DataFrame(ROWS))
    assert {tag: [row["a"] for row in rows] for tag, rows in harness.outputs.items()} == {
        "two": [2],
        "small": [1],
        "main": [3],
    }
    assert harness.frames["main"][0]["row_watermark"].to_list() == [25]


def test_a_split_counts_null_as_false():
    harness = OperatorHarness(Split({"big": pl.col("a") > 1}))
    harness.push([{"a": None}, {"a": 2}])
    assert harness.outputs == {"big": [{"a": 2}], "main": [{"a": None}]}


def test_projected_columns_are_computed_from_the_old_ones_and_reserved_ones_stay():
    expressions = [pl.col("a") * 2, pl.col("a").alias("b")]
    operator = Project("select", expressions, ["b", "a", "event_time"])
    assert sent_through(operator) == {
        "b": [1, 2, 3],
        "a": [2, 4, 6],
        "event_time": [10, 20, 30],
        "row_watermark": [None, 25, 25],
    }


def test_an_expression_of_all_columns_does_not_touch_reserved_ones():
    operator = Project("with_columns", [pl.exclude("event_time") * 2], ["a", "event_time"])
    assert sent_through(operator)["row_watermark"] == [None, 25, 25]


def test_an_expression_that_fails_names_the_step_and_shows_a_row():
    with pytest.raises(FunctionError, match=r"select failed: .*first row of the batch \{'a': 1"):
        sent_through(Project("select", [pl.col("a").cast(pl.String).str.to_date("%Y")], ["a"]))


def test_a_key_group_is_added_once_per_row():
    harness = OperatorHarness(KeyBy(["a"]), max_parallelism=7)
    harness.push(pl.DataFrame(ROWS))
    groups = harness.frames["main"][0]["key_group"]
    assert groups.dtype == pl.UInt16
    assert groups.max() < 7


def test_batches_may_lose_rows_when_reserved_columns_stay():
    operator = MapBatches(lambda frame: frame.filter(pl.col("a") > 2), "keep", SCHEMA)
    assert sent_through(operator) == {"a": [3], "event_time": [30], "row_watermark": [25]}


def test_batches_of_equal_height_get_their_reserved_columns_back():
    operator = MapBatches(lambda frame: frame.select(pl.col("a") + 1), "add", SCHEMA)
    assert sent_through(operator) == {**ROWS, "a": [2, 3, 4]}


def test_batches_that_lose_rows_and_event_time_are_refused():
    operator = MapBatches(lambda frame: frame.select("a").head(1), "head", SCHEMA)
    with pytest.raises(
        FunctionError, match="lost event_time, row_watermark and changed the number"
    ):
        sent_through(operator)


def test_batches_may_come_back_in_another_order_but_not_with_other_event_times():
    swapped = MapBatches(lambda frame: frame.reverse(), "swap", SCHEMA)
    assert sent_through(swapped)["event_time"] == [30, 20, 10]
    later = MapBatches(lambda frame: frame.with_columns(pl.col("event_time") + 5), "add", SCHEMA)
    with pytest.raises(FunctionError, match=r"'add' changed event_time: first row .*leave it"):
        sent_through(later)


def test_batches_may_be_lazy_but_must_be_frames():
    lazy = MapBatches(lambda frame: frame.lazy().filter(pl.col("a") > 2), "lazy", SCHEMA)
    assert sent_through(lazy)["a"] == [3]
    with pytest.raises(FunctionError, match="'text' raised TypeError: gave a str instead"):
        sent_through(MapBatches(lambda frame: "rows", "text", SCHEMA))


def test_batches_of_other_types_than_promised_are_refused():
    operator = MapBatches(lambda frame: frame.with_columns(pl.col("a").cast(str)), "text", SCHEMA)
    with pytest.raises(FunctionError, match="returned other columns than it promised"):
        sent_through(operator)


def test_a_frame_function_that_raises_names_itself():
    operator = MapBatches(lambda frame: 1 / 0, "divide", SCHEMA)
    with pytest.raises(FunctionError, match="map_batches 'divide' raised ZeroDivisionError"):
        sent_through(operator)


def test_a_message_of_many_lines_becomes_one_that_still_shows_the_row():
    def divide(row):
        raise ValueError("no\nnumber\n" + "x" * 1_000)

    with pytest.raises(FunctionError) as caught:
        sent_through(MapRows(divide, "divide", SCHEMA))
    assert "map 'divide' raised ValueError: no number xxx" in str(caught.value)
    assert "row {'a'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("operator", [MapBatches, MapRows])
def test_a_function_that_ends_its_process_is_one_that_raises(operator):
    with pytest.raises(FunctionError, match="raised SystemExit: 5"):
        sent_through(operator(lambda given: sys.exit(5), "leave", SCHEMA))


def test_map_makes_one_row_of_each():
    operator = MapRows(lambda row: {"b": str(row["a"])}, "text", {"b": pl.String(), **SCHEMA})
    made = sent_through(operator)
    assert made["b"] == ["1", "2", "3"]
    assert made["a"] == [None, None, None]
    assert made["row_watermark"] == [None, 25, 25]


def test_map_refuses_what_is_not_a_row():
    with pytest.raises(FunctionError, match=r"gave 5: row .*; give rows as dicts"):
        sent_through(MapRows(lambda row: 5, "five", SCHEMA))


def test_flat_map_makes_any_number_of_rows():
    operator = FlatMapRows(lambda row: [row] * (row["a"] - 1), "repeat", SCHEMA)
    assert sent_through(operator) == {
        "a": [2, 3, 3],
        "event_time": [20, 30, 30],
        "row_watermark": [25, 25, 25],
    }


def test_flat_map_of_nothing_sends_nothing():
    assert sent_through(FlatMapRows(lambda row: None, "nothing", SCHEMA)) is None


def test_rows_are_filtered_by_a_function():
    operator = FilterRows(lambda row: row["a"] % 2, "odd", SCHEMA)
    assert sent_through(operator) == {
        "a": [1, 3],
        "event_time": [10, 30],
        "row_watermark": [None, 25],
    }


def test_functions_do_not_see_hidden_columns():
    operator = FilterRows(lambda row: 1 / 0, "see", SCHEMA)
    with pytest.raises(FunctionError, match=r"\{'a': 1, 'event_time': 10\}"):
        sent_through(operator)
