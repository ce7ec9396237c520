"""Panes: whatever is gathered comes out once, however many keys and slices there are."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import agg, windows
from engine.aggregates import ROWS, Partials
from engine.elements import MAX_TIME, MIN_TIME
from engine.errors import FunctionError
from engine.operators.windows import panes as limits
from engine.operators.windows.horizons import horizons
from engine.operators.windows.panes import Panes
from engine.operators.windows.partial_aggregate import PartialAggregate
from engine.state.contract import SLICE_END
from engine.testing.harness import OperatorHarness

SPECS = {
    "n": agg.count(),
    "total": agg.sum("value"),
    "least": agg.min("value"),
    "spread": agg.var("value"),
}
PARTIALS = Partials(
    {name: spec.accumulator(name, pl.Float64()) for name, spec in SPECS.items()},
    {name: spec.of for name, spec in SPECS.items()},
)
SCHEMA = {"key": pl.Int64(), "value": pl.Float64(), "event_time": pl.Int64()}
STEP = 10

batches = st.lists(
    st.tuples(
        st.integers(0, 3) | st.integers(0, 40),
        st.none()
        | st.floats(-1e3, 1e3)
        | st.sampled_from([math.inf, 1e300, 1e-300, 1e-5, 2.0**-20, 1e10]),
        st.integers(0, 200),
    ),
    min_size=1,
    max_size=20,
)


def tighten(patch):
    """Set limits that a short script runs into."""
    for name, limit in {
        "_FIRST_STRIDE": 4,
        "_FIRST_BLOCKS": 2,
        "_MOST_BLOCKS": 4,
        "_MOST_CELLS": 64,
        "_MOST_KEYS": 10,
        "MOST_ROWS": 25,
    }.items():
        patch.setattr(limits, name, limit)


def harness():
    return OperatorHarness(PartialAggregate(["key"], horizons(windows.tumbling(STEP)), PARTIALS))


def merged(frames):
    """Partials of many frames, one per key and slice."""
    everything = pl.concat(
        [frame.select("key", SLICE_END, ROWS, *PARTIALS.columns) for frame in frames]
    )
    rows = everything.group_by("key", SLICE_END).agg(pl.col(ROWS).sum()).sort("key", SLICE_END)
    merged = PARTIALS.merge(everything, ["key", SLICE_END], []).sort("key", SLICE_END)
    return rows.rows(), merged.rows()


@given(scripts=st.lists(batches | st.integers(0, 200), min_size=1, max_size=8))
@settings(max_examples=80, deadline=None)
def test_gathered_rows_come_out_as_if_each_batch_went_by_itself(scripts):
    with pytest.MonkeyPatch.context() as patch:
        tighten(patch)
        gathering, single = harness(), harness()
        single._operator._panes = None
        for step in scripts:
            for each in (gathering, single):
                if isinstance(step, int):
                    each.advance(step)
                else:
                    each.push(pl.DataFrame(step, schema=SCHEMA, orient="row"))
        for each in (gathering, single):
            each.advance(MAX_TIME)
    assert gathering.outputs["late"] == single.outputs["late"]
    assert gathering.counters == single.counters
    if single.frames["main"]:
        assert merged(gathering.frames["main"]) == merged(single.frames["main"])
    else:
        assert not gathering.frames["main"]


def test_slices_leave_when_the_watermark_reaches_their_end_and_not_before():
    job = harness()
    job.push([{"key": 1, "value": 1.0, "event_time": time} for time in (5, 15)])
    job.advance(STEP - 1)
    assert not job.frames["main"]
    job.advance(STEP)
    assert [frame[SLICE_END].to_list() for frame in job.frames["main"]] == [[STEP]]


def test_many_new_keys_in_several_slices_are_counted_once():
    job = harness()
    for first in (0, 900, 1_800):
        keys = np.arange(first, first + 2_000) // 2
        times = np.arange(len(keys)) % 30
        job.push(pl.DataFrame({"key": keys, "value": keys / 2, "event_time": times}))
    job.flush()
    rows = Counter()
    for frame in job.frames["main"]:
        rows.update(dict(frame.group_by("key").agg(pl.col(ROWS).sum()).rows()))
    assert rows.total() == 6_000
    assert set(rows) == set(range(1_900))


def test_an_aggregate_without_cells_is_kept_by_batches():
    spec = agg.n_unique("value")
    partials = Partials({"n": spec.accumulator("n", pl.Float64())}, {"n": spec.of})
    job = OperatorHarness(PartialAggregate(["key"], horizons(windows.tumbling(STEP)), partials))
    job.push([{"key": 1, "value": 1.0, "event_time": 5}])
    assert len(job.frames["main"]) == 1


@pytest.mark.parametrize("grid", [(4, 1, 0), (4, 0, 3)])
def test_a_batch_across_too_many_slices_is_not_gathered(grid, monkeypatch):
    tighten(monkeypatch)
    sent = []
    panes = Panes(["key"], grid, PARTIALS.cells(), 128, sent.append)
    rows = pl.DataFrame([(1, 1.0, time) for time in range(200)], schema=SCHEMA, orient="row")[:20]
    assert panes.add(rows[:4], PARTIALS.values(rows[:4]), MIN_TIME)
    far = rows.with_columns(pl.col("event_time") * 100)
    assert not panes.add(far, PARTIALS.values(far), MIN_TIME)
    assert sum(frame[ROWS].sum() for frame in sent) == 4


def test_a_sum_that_is_no_64_bit_integer_tells_its_row():
    spec = agg.sum("v")
    partials = Partials({"total": spec.accumulator("total", pl.UInt64())}, {"total": spec.of})
    made = PartialAggregate(["key"], horizons(windows.tumbling(10)), partials)
    rows = pl.DataFrame({"key": ["a"], "v": [2**63], "event_time": [1]})
    with pytest.raises(
        FunctionError, match=r"aggregate failed: .* first row of the batch .*'v': 9"
    ):
        OperatorHarness(made).push(rows)
