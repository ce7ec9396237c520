"""Every aggregate: however its rows are batched and its partials merged, not a bit is different."""

from __future__ import annotations

import math
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import agg
from engine.aggregates import Partials
from engine.errors import GraphError

SCHEMA = {"x": pl.Float64(), "n": pl.Int64(), "word": pl.String(), "event_time": pl.Int64()}
SPECS = {
    "count": agg.count("x"),
    "sum": agg.sum("x"),
    "whole": agg.sum("n"),
    "mean": agg.mean("x"),
    "low": agg.min("x"),
    "high": agg.max("word"),
    "first": agg.first("x"),
    "last": agg.last("word"),
    "var": agg.var("x"),
    "std": agg.std("x", ddof=0),
    "distinct": agg.n_unique("word"),
    "about": agg.n_unique("word", exact=False),
    "numbers": agg.n_unique("x", exact=False, accuracy=0.2),
    "median": agg.quantile("x", 0.5),
    "top": agg.top_k("x", 3),
    "words": agg.collect("word"),
}


def partials_of(specs):
    types = pl.DataFrame(schema=SCHEMA)
    made = {}
    for name, spec in specs.items():
        made[name] = spec.accumulator(name, types.select(v=spec.of).schema["v"])
    return Partials(made, {name: spec.of for name, spec in specs.items()})


ALL = partials_of(SPECS)


def partial(rows):
    frame = pl.DataFrame(rows, SCHEMA, orient="row")
    ends = pl.Series("slice_end", [1] * frame.height, dtype=pl.Int64)
    return ALL.of_rows(frame, ends, []).select("slice_end", *ALL.columns)


def merged(parts):
    return ALL.merge(pl.concat(parts), ["slice_end"], [])


def shape(frame):
    """All that can be seen of partials and results, to the bit."""
    return repr(frame.select(list(ALL.columns)).to_dicts()), repr([*map(list, ALL.results(frame))])


floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, -0.1, 0.0, -0.0])
rows = st.tuples(
    st.none() | floats | st.sampled_from([math.inf, 1e16, -1e16]),
    st.none() | st.integers(-9, 9),
    st.none() | st.text(max_size=2),
    st.integers(0, 3),
)


@given(st.lists(rows, min_size=1, max_size=14), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_no_order_of_rows_or_merges_can_be_seen(given_rows, random):
    shuffled = random.sample(given_rows, len(given_rows))
    parts = []
    while shuffled:
        cut = random.randint(1, len(shuffled))
        parts.append(partial(shuffled[:cut]))
        shuffled = shuffled[cut:]
    while len(parts) > 1:
        random.shuffle(parts)
        cut = random.randint(2, len(parts))
        parts = [merged(parts[:cut]), *parts[cut:]]
    assert shape(parts[0]) == shape(partial(given_rows))


def test_ten_million_alternating_values_do_not_drift():
    """A plain float sum loses each 0.1 that meets 1e16: half of the result."""
    values = [1e16, 0.1, -1e16, 0.1]
    exact = Fraction(0.1) / 2
    specs = partials_of({"sum": agg.sum("x"), "mean": agg.mean("x")})
    rows = pl.DataFrame({"x": values * 125_000, "event_time": 0})
    ends = pl.Series("slice_end", [1], dtype=pl.Int64).new_from_index(0, rows.height)
    part = specs.of_rows(rows, ends, []).select("slice_end", *specs.columns)
    held = part
    for _ in range(19):
        held = specs.merge(pl.concat([held, part]), ["slice_end"], [])
    total, mean = (series[0] for series in specs.results(held))
    assert total == float(10_000_000 * exact)
    assert mean == pytest.approx(0.05, rel=1e-15)


def about(values, accuracy=0.02):
    spec = agg.n_unique("v", exact=False, accuracy=accuracy)
    series = pl.Series("v", values)
    sketch = Partials({"n": spec.accumulator("n", series.dtype)}, {"n": spec.of})
    ends = pl.Series("slice_end", [1], dtype=pl.Int64).new_from_index(0, len(series))
    return sketch.results(sketch.of_rows(series.to_frame(), ends, []))[0][0]


@pytest.mark.parametrize("count", [1, 10, 300, 5_000, 100_000])
@pytest.mark.parametrize("accuracy", [0.02, 0.05])
def test_a_sketch_of_different_values_keeps_its_error(count, accuracy):
    """Three standard errors; the values are fixed, and so is the outcome."""
    found = about(range(-7, count - 7), accuracy)
    assert found == pytest.approx(count, rel=3 * accuracy)


REGISTERS = (29697, 105474)
"""Of the values 3 and 70: snapshots hold such numbers, so they must never change."""


def test_a_sketch_counts_a_value_once_however_often_and_in_which_type_it_comes():
    assert about(["a", "b", "a", "b", "a", None]) == 2
    assert about([0.0, -0.0, math.nan, -math.nan]) == 2
    assert about(pl.Series([None, None], dtype=pl.Int64)) == 0
    registers = [
        agg.n_unique("v", exact=False).accumulator("n", dtype).lift(pl.Series([3, 70], dtype=dtype))
        for dtype in (pl.Int8(), pl.UInt64(), pl.Float32(), pl.Int64())
    ]
    assert {tuple(each.to_list()) for [each] in registers} == {REGISTERS}


def test_what_a_sketch_cannot_do_is_refused():
    with pytest.raises(GraphError, match=r"accuracy of n_unique is out of range: got 0; pass 0"):
        agg.n_unique("x", exact=False, accuracy=0)
