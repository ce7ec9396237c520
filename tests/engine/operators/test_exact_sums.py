"""Exact sums: equal bits for any order and any cut, and the correctly rounded result."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.aggregates import Partials
from engine.aggregates import sum as sum_of
from engine.aggregates.exact import exact_sum

finite = st.floats(allow_nan=False, allow_infinity=False)
everyday = st.floats(-1e6, 1e6)
anything = st.floats()

PARTIALS = Partials(
    {"total": sum_of("value").accumulator("total", pl.Float64())}, {"total": pl.col("value")}
)


def summed(*batches):
    """The sum of the batches, as a window makes it: a partial per batch, then one merge."""
    partials = []
    for batch in batches:
        frame = pl.DataFrame({"key": [0] * len(batch), "value": pl.Series(batch, dtype=pl.Float64)})
        ends = pl.Series("slice_end", [1] * len(batch), dtype=pl.Int64)
        partials.append(PARTIALS.of_rows(frame, ends, ["key"]))
    columns = ["key", "slice_end", *PARTIALS.columns]
    merged = PARTIALS.merge(pl.concat(partials).select(columns), ["key"], ["slice_end"])
    return PARTIALS.results(merged)[0][0]


def bits(value):
    return "nan" if math.isnan(value) else value.hex()


@given(st.lists(finite | everyday, max_size=40))
@settings(deadline=None)
def test_a_sum_is_the_exact_sum_rounded_once(values):
    try:
        expected = math.fsum(values)
    except OverflowError:  # fsum gives up when a partial sum overflows, which ours need not
        return
    assert bits(exact_sum(values)) == bits(expected)


@given(st.lists(anything | everyday, min_size=1, max_size=30), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=50)
def test_neither_order_nor_batches_change_a_bit(values, random):
    shuffled = random.sample(values, len(values))
    cuts = sorted(random.choices(range(len(values) + 1), k=3))
    cuts = [0, *cuts, len(values)]
    batches = [shuffled[lo:hi] for lo, hi in pairwise(cuts) if lo < hi]
    assert bits(summed(*batches)) == bits(summed(values)) == bits(exact_sum(values))


def test_an_overflow_on_the_way_does_not_spoil_the_sum():
    orders = permutations([1e308, 1e308, -1e308, -1e308, 1.0])
    assert {summed(*([value] for value in order)) for order in orders} == {1.0}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0.0),
        ([-0.0], 0.0),
        ([0.1] * 10, 1.0),
        ([1e308, 1e308], math.inf),
        ([-1e308, -1e308], -math.inf),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([5e-324, 5e-324], 1e-323),
        ([9.1e-31] * 3, math.fsum([9.1e-31] * 3)),
        ([2.0**64, -1.0], 2.0**64),
        ([2.0**64, -(2.0**64), 0.5], 0.5),
        ([-(2.0**-90)], -(2.0**-90)),
        ([1.0, -(2.0**-90)], 1.0),
        ([2.0**53, 1.0], 2.0**53),
        ([2.0**53, 1.0, 2.0**-96], 2.0**53 + 2),
        ([-(2.0**53), -1.0, -(2.0**-96)], -(2.0**53) - 2),
        ([2.0**53, 1.0, -(2.0**-96)], 2.0**53),
        ([1.0, 2.0**-53], 1.0),
        ([1.0, 2.0**-53, 2.0**-96], 1.0 + 2.0**-52),
    ],
)
def test_sums_at_the_edges_of_what_a_double_can_hold(values, expected):
    assert bits(exact_sum(values)) == bits(expected)


def test_a_sum_beyond_the_limbs_is_still_exact():
    values = [2.0**63] * 70_000 + [1.5]
    assert summed(values[:40_000], values[40_000:]) == math.fsum(values)


def test_nulls_count_as_nothing():
    assert summed([None, 1.5, None]) == 1.5
    assert summed([None]) == 0.0
