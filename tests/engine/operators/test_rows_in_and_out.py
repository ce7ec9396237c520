"""Frames to rows and back: by ways of our own that are faster, so they must equal the library's."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import FunctionError
from engine.operators.records.rows import columns_of, rows_of, values_of
from engine.operators.records.rows_out import RowsOut, column_of

SCHEMA = {"a": pl.Int64(), "b": pl.String(), "event_time": pl.Int64()}
zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"])
micros = st.lists(st.none() | st.integers(-(2**53), 2**53) | st.integers(0, 2**30), max_size=6)


@given(micros, zones)
@settings(max_examples=60, deadline=None)
def test_times_with_a_zone_go_in_and_out_exactly(micros, zone):
    column = pl.Series("at", micros, dtype=pl.Int64).cast(pl.Datetime("us", zone))
    assert values_of(column) == column.to_list()
    assert column_of("at", values_of(column), column.dtype).equals(column)


def test_rows_are_what_the_library_gives():
    frame = pl.DataFrame({"it's": [1, None], 'so "called"': ["x", "\n"], "{}": [[1], []]})
    assert list(rows_of(columns_of(frame))) == frame.to_dicts()
    assert list(rows_of(columns_of(frame.clear()))) == []


def out(rows, source):
    collected = RowsOut("map 'f'", SCHEMA, lambda origin: source.row(origin, named=True))
    with collected.explained():
        collected.collect(rows)
    return collected.frame(source)


SOURCE = pl.DataFrame({"event_time": [7, 8, 9], "row_watermark": [None, 20, None]})


def test_rows_keep_the_stamps_of_their_origins_whichever_columns_they_leave_out():
    whole, short, null = {"event_time": 7, "b": "x", "a": 1}, {"b": "y", "a": 2}, {"b": "z"}
    found = out([[whole], None, [short, null]], SOURCE)
    assert found.rows() == [(1, "x", 7, None), (2, "y", 9, None), (None, "z", 9, None)]


def test_a_row_that_is_changed_after_it_was_given_is_not_changed_here():
    def steps():
        row = {"a": 1, "b": "x"}
        yield row
        row["a"] = 2
        yield row

    assert out([steps()], SOURCE)["a"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"a": 1, "c": "x"}, "gave unknown columns c, promised a, b, event_time"),
        ({"a": 1, "b": "x", "c": 1}, "gave unknown columns c"),
        ([1, "x", 8], r"gave \[1, 'x', 8\]"),
        ({"a": 1, "b": "x", "event_time": 9}, "changed event_time from 8 to 9"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_the_row_it_was_made_from(row, sentence):
    with pytest.raises(FunctionError, match=f"map 'f' {sentence}.*: row .*'event_time': 8"):
        out([None, [row]], SOURCE)


def test_an_error_of_the_function_shows_the_row_it_was_called_with():
    def broken():
        yield {"a": 1, "b": "x"}
        raise ValueError("no")

    with pytest.raises(FunctionError, match=r"raised ValueError: no: row \{'event_time': 9"):
        out([None, [], broken()], SOURCE)


def test_a_moment_of_a_zone_is_one_in_utc():
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert column_of("at", [at, None], pl.Datetime("us", "UTC")).to_list() == [at, None]
