"""Windows that move along: bit for bit what merging all of their slices gives, and cheaper."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import agg, kernels, windows
from engine.aggregates import Accumulator, Partials
from engine.kernels import keyslots, loading
from engine.operators.windows import running_window
from engine.operators.windows.horizons import horizons
from engine.operators.windows.partial_aggregate import PartialAggregate
from engine.operators.windows.running_window import RunningWindow
from engine.operators.windows.sliced_aggregate import SlicedAggregate
from fixtures.window_job import WindowJob, play

SCHEMA = {
    "key": pl.String(),
    "value": pl.Float64(),
    "event_time": pl.Int64(),
    "row_watermark": pl.Int64(),
}


class Span(agg.AggregateFunction):
    """The largest less the smallest, of whole numbers."""

    fields = {"low": int, "high": int}
    result_type = int

    def create(self):
        return {"low": 10**9, "high": -(10**9)}

    def add(self, fields, value):
        return {"low": min(fields["low"], value), "high": max(fields["high"], value)}

    def merge(self, one, other):
        return self.add(self.add(one, other["low"]), other["high"])

    def result(self, fields):
        return fields["high"] - fields["low"]


PLACE = pl.col("event_time") % 5
TIMED = pl.Struct({"time": pl.Int64(), "value": pl.Float64()})
SPECS = {
    "n": (agg.count("value"), pl.Float64()),
    "total": (agg.sum("value"), pl.Float64()),
    "whole": (agg.sum(PLACE), pl.Int64()),
    "mean": (agg.mean("value"), pl.Float64()),
    "spread": (agg.std("value"), pl.Float64()),
    "median": (agg.quantile("value", 0.5), pl.Float64()),
    "least": (agg.min("value"), pl.Float64()),
    "most": (agg.max("value"), pl.Float64()),
    "first": (agg.first("value"), TIMED),
    "last": (agg.last("value"), TIMED),
    "places": (agg.n_unique(PLACE), pl.Int64()),
    "top": (agg.top_k("value", 2), pl.Float64()),
    "all": (agg.collect(PLACE), pl.Int64()),
    "span": (agg.custom(Span(), PLACE), pl.Int64()),
}
NUMBERS = [0.1, -0.0, 0.0, -7.25, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan]
WINDOWS = {
    "sliding": windows.sliding(12, 1),
    "sliding in pairs": windows.sliding(13, 3, 1),
    "cumulative": windows.cumulative(8, 2, 1),
}


@pytest.fixture(params=["roomy", "cramped", "small"], scope="module", autouse=True)
def _keys(request):
    """With plain loops; with compiled ones, and keys that are forgotten as soon as may be; and with
    windows of which some are too small to move along.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running_window, "_SMALL_BYTES", 200 if request.param == "small" else 0)
        if request.param == "cramped":
            patch.setattr(keyslots, "_FEW_KEYS", 0)
            kernels.load()
        yield
        loading._Using.kernels = loading.plain


def partials(names):
    return Partials(
        {name: SPECS[name][0].accumulator(name, SPECS[name][1]) for name in sorted(names)},
        {name: SPECS[name][0].of for name in sorted(names)},
    )


class AllSlices:
    """The definition: merge the slices of each window anew."""

    takes_late = False
    merged = True

    def __init__(self, keys, partials):
        self._keys, self._partials = list(keys), partials

    def moved_to(self, start, end, slices):
        runs = slices.read(start, end)
        if not runs:
            return None
        merged = self._partials.merge(pl.concat(runs), self._keys, []).sort(self._keys)
        return merged.select(*self._keys, *self._partials.columns)


class Defined(SlicedAggregate):
    def open(self, ctx):
        super().open(ctx)
        self._window = AllSlices(self.keys, self.partials)


def run(operator, late, names, script):
    """All results as text, which tells all bits; the late rows."""

    def start():
        parts = partials(names)
        halves = (
            PartialAggregate(["key"], late, parts),
            operator({"key": pl.String()}, late, parts),
        )
        return WindowJob(halves, SCHEMA)

    outputs, set_aside = play(start, script)
    return sorted(map(repr, outputs)), set_aside


rows = st.tuples(
    st.sampled_from("abc"),
    st.none() | st.sampled_from(NUMBERS),
    st.integers(-8, 40),
    st.none() | st.integers(-8, 50),
)
batches = st.lists(rows, min_size=1, max_size=8)
crashes = st.tuples(st.just("crash"), st.integers(1, 3))
sums = st.sampled_from([{"n"}, {"n", "total"}, {"whole", "mean"}])
scripts = st.lists(batches | st.integers(-8, 50) | crashes, max_size=12)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("allowed", [0, 6])
@given(script=scripts, names=st.sets(st.sampled_from(sorted(SPECS)), min_size=1, max_size=5) | sums)
@settings(max_examples=10, deadline=None)
def test_a_window_that_moves_along_gives_the_bits_of_all_its_slices(window, allowed, script, names):
    late = horizons(WINDOWS[window], allowed)
    assert run(SlicedAggregate, late, names, script) == run(Defined, late, names, script)


@given(
    window=st.sampled_from(sorted(WINDOWS)),
    times=st.sets(st.integers(-20, 40), max_size=6),
    since=st.integers(-30, 50),
    more=st.integers(1, 30),
)
@settings(max_examples=100, deadline=None)
def test_every_window_with_a_slice_ends_once(window, times, since, more):
    of = WINDOWS[window]
    slice_ends = sorted(of.slice_ends(np.array(list(times), dtype=np.int64)).tolist())
    found = horizons(of).ends(slice_ends, since, since + more)
    assert found == [
        end
        for end in range(since + 1, since + more + 1)
        if (end - of.anchor) % of.step == 0
        and any(of.start(end) < slice_end <= end for slice_end in slice_ends)
    ]


RUN = {"key": pl.String(), "n": pl.Int64(), "most": pl.Int64()}


class Slices:
    """A state of runs that only reads."""

    def __init__(self, *ends_of_keys):
        self._runs = {
            end: [pl.DataFrame([(key, 1, end) for key in keys], RUN, orient="row")]
            for end, keys in ends_of_keys
        }

    def slice_ends(self):
        return list(self._runs)

    def read(self, after, until):
        return [run for end in range(after + 1, until + 1) for run in self._runs.get(end, [])]


class Counting(Accumulator):
    """Remembers how many partials it merged."""

    def __init__(self, of):
        super().__init__(of.name)
        self._of = of
        self.merged = 0

    columns = property(lambda self: self._of.columns)

    def lift(self, values):
        return self._of.lift(values)

    def reduce(self, frame):
        self.merged += frame.height
        return self._of.reduce(frame)

    def negated(self, frame):
        return self._of.negated(frame)

    def result(self, frame):
        return self._of.result(frame)


@pytest.mark.parametrize(("name", "most"), [("n", 3.1), ("most", 10.0)])
def test_a_firing_merges_few_slices_of_the_128_that_a_window_has(name, most, monkeypatch):
    monkeypatch.setattr(running_window, "_SMALL_BYTES", 0)
    counting = Counting(SPECS[name][0].accumulator(name, pl.Int64()))
    window = RunningWindow(["key"], Partials({name: counting}, {}), slides=True)
    state = Slices(*((end, "a") for end in range(1, 257)))
    window.moved_to(0, 128, state)
    counting.merged = 0
    for end in range(129, 257):
        window.moved_to(end - 128, end, state)
    assert counting.merged / 128 <= most


def test_a_key_leaves_with_its_last_slice(monkeypatch):
    monkeypatch.setattr(running_window, "_SMALL_BYTES", 0)
    window = RunningWindow(["key"], partials(["n"]), slides=True)
    state = Slices((1, "a"), (2, "ab"), (3, "b"))
    found = [window.moved_to(end - 2, end, state).rows() for end in (2, 3, 4)]
    assert found == [[("a", 2), ("b", 1)], [("a", 1), ("b", 2)], [("b", 1)]]
    assert window.moved_to(3, 5, state) is None


def test_a_small_window_is_left_to_be_merged_with_others(monkeypatch):
    monkeypatch.setattr(running_window, "_SMALL_BYTES", 2**18)
    counting = Counting(SPECS["n"][0].accumulator("n", pl.Int64()))
    window = RunningWindow(["key"], Partials({"n": counting}, {}), slides=True)
    found = window.moved_to(0, 3, Slices((1, "ab"), (2, "b"), (3, "a")))
    assert not window.merged
    assert not counting.merged
    assert found.rows() == [("a", 1), ("b", 1), ("b", 1), ("a", 1)]
