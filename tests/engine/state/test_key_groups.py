"""Key groups: stored in snapshots, so their values must never change."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import FunctionError, GraphError
from engine.keygroups import check_keys, key_groups, range_of, subtask_of

GOLDEN = {
    "text": (["", "UA", "AA", "zürich", "東京"], pl.String, [48, 80, 127, 119, 67]),
    "whole": ([0, 1, -1, 2**31, -(2**63)], pl.Int64, [48, 126, 72, 0, 29]),
    "truth": ([False, True], pl.Boolean, [48, 126]),
    "day": ([date(1970, 1, 1), date(2013, 3, 1)], pl.Date, [48, 89]),
    "moment": ([datetime(2013, 3, 1, 5, 30, tzinfo=UTC)], pl.Datetime("us", "UTC"), [92]),
}


def groups_of(values, dtype, max_parallelism=128):
    return key_groups(pl.DataFrame({"k": pl.Series(values, dtype=dtype)}), ["k"], max_parallelism)


@pytest.mark.parametrize(("values", "dtype", "expected"), GOLDEN.values(), ids=GOLDEN)
def test_key_groups_are_what_stored_snapshots_hold(values, dtype, expected):
    assert groups_of(values, dtype).to_list() == expected


@given(st.lists(st.integers(0, 127), min_size=1))
@settings(deadline=None, max_examples=50)
def test_a_wider_integer_column_keeps_its_key_groups(values):
    narrow = groups_of(values, pl.Int8)
    for dtype in (pl.UInt8, pl.Int16, pl.UInt32, pl.Int64, pl.UInt64):
        assert groups_of(values, dtype).to_list() == narrow.to_list()


def test_the_unit_of_a_time_does_not_matter():
    moment = [datetime(2013, 3, 1, 5, 30)]
    of_units = {groups_of(moment, pl.Datetime(unit))[0] for unit in ("ms", "us", "ns")}
    assert len(of_units) == 1


def test_the_order_of_key_columns_matters():
    frame = pl.DataFrame({"a": ["x", "y"], "b": ["y", "x"]})
    assert key_groups(frame, ["a", "b"], 128).n_unique() == 2


@given(st.lists(st.text(), min_size=1), st.integers(1, 2**15))
@settings(deadline=None, max_examples=50)
def test_a_batch_does_not_change_the_group_of_a_key(values, max_parallelism):
    together = groups_of(values, pl.String, max_parallelism).to_list()
    alone = [groups_of([value], pl.String, max_parallelism)[0] for value in values]
    assert together == alone
    assert all(0 <= group < max_parallelism for group in together)


def test_many_keys_spread_evenly():
    counts = groups_of(range(128_000), pl.Int64).value_counts()["count"]
    assert counts.len() == 128
    assert counts.min() > 850
    assert counts.max() < 1150


def test_an_empty_frame_has_no_groups():
    assert groups_of([], pl.String).to_list() == []


def test_a_null_key_is_refused_with_its_column():
    with pytest.raises(FunctionError, match="key column 'k' is null in 1 of 2 rows"):
        groups_of(["a", None], pl.String)


@pytest.mark.parametrize(
    "dtype", [pl.Float64(), pl.Int128(), pl.List(pl.Int64), pl.Struct({"a": pl.Int64})]
)
def test_a_key_that_cannot_be_compared_is_refused_when_the_graph_is_built(dtype):
    with pytest.raises(GraphError, match="column 'k' cannot be a key"):
        check_keys({"k": dtype}, ["k"])


@given(st.integers(1, 64), st.integers(1, 512))
@settings(deadline=None, max_examples=50)
def test_ranges_cover_every_group_once_and_agree_with_subtasks(parallelism, max_parallelism):
    if parallelism > max_parallelism:
        return
    ranges = [range_of(index, parallelism, max_parallelism) for index in range(parallelism)]
    owners = [index for index, range_ in enumerate(ranges) for _ in range(range_.lo, range_.hi)]
    assert owners == [
        subtask_of(group, parallelism, max_parallelism) for group in range(max_parallelism)
    ]
