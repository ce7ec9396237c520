"""Every aggregate in windows, against its definition over the rows of each window."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as hw
from engine import agg, windows
from engine.aggregates import Partials
from engine.elements import MAX_TIME
from engine.errors import FunctionError, GraphError
from engine.operators.windows.horizons import horizons
from engine.operators.windows.partial_aggregate import PartialAggregate
from engine.operators.windows.window_aggregate import WindowAggregate
from engine.testing.memory import MemorySource
from fixtures.window_job import WindowJob, play

SIZE, ACCURACY = 8, 0.01
SCHEMA = {"key": pl.String(), "x": pl.Float64(), "word": pl.String(), "event_time": pl.Int64()}


class Longest(agg.AggregateFunction):
    """The longest word, and how many there were."""

    fields = {"word": str, "seen": int}
    result_type = str

    def create(self):
        return {"word": "", "seen": 0}

    def add(self, fields, value):
        word = max(fields["word"], value, key=lambda word: (len(word), word))
        return {"word": word, "seen": fields["seen"] + 1}

    def merge(self, one, other):
        return self.add(one, other["word"]) | {"seen": one["seen"] + other["seen"]}

    def result(self, fields):
        return f"{fields['word']} of {fields['seen']}"


SPECS = {
    "opened": agg.first("x"),
    "closed": agg.last("word"),
    "variance": agg.var("x"),
    "spread": agg.std("x", ddof=0),
    "distinct": agg.n_unique("word"),
    "numbers": agg.n_unique("x"),
    "median": agg.quantile("x", 0.5, ACCURACY),
    "high": agg.quantile("x", 0.9, ACCURACY),
    "top": agg.top_k("x", 2),
    "words": agg.collect("word"),
    "longest": agg.custom(Longest(), "word"),
}


def partials_of(specs):
    empty = pl.DataFrame(schema=SCHEMA)
    types = {name: empty.select(spec.of.alias(name)).schema[name] for name, spec in specs.items()}
    return Partials(
        {name: spec.accumulator(name, types[name]) for name, spec in specs.items()},
        {name: spec.of for name, spec in specs.items()},
    )


def start(specs=SPECS):
    partials, window = partials_of(specs), windows.tumbling(SIZE)
    early = PartialAggregate(["key"], horizons(window), partials)
    return WindowJob((early, WindowAggregate({"key": pl.String()}, window, partials)), SCHEMA)


def run(script):
    outputs, _ = play(start, script)
    found = {(row["event_time"] + 1, row["key"]): row for row in outputs}
    assert len(found) == len(outputs)
    return {at: {name: row[name] for name in SPECS} for at, row in found.items()}


def model(script):
    windows_of = defaultdict(list)
    for step in script:
        if isinstance(step, list):
            for key, x, word, time in step:
                windows_of[time // SIZE * SIZE + SIZE, key].append((time, x, word))
    return {at: defined(rows) for at, rows in windows_of.items()}


def defined(rows):
    xs = sorted(x for _, x, _ in rows if x is not None)
    words = sorted(word for _, _, word in rows if word is not None)
    longest = max(words, key=lambda word: (len(word), word), default="")
    timed = [(time, word) for time, _, word in rows if word is not None]
    return {
        "opened": min(((time, x) for time, x, _ in rows if x is not None), default=(0, None))[1],
        "closed": max(timed, default=(0, None))[1],
        "variance": variance(xs, 1),
        "spread": None if (found := variance(xs, 0)) is None else math.sqrt(found),
        "distinct": len(set(words)),
        "numbers": len(set(xs)),
        "median": ranked(xs, Fraction(1, 2)),
        "high": ranked(xs, Fraction(9, 10)),
        "top": sorted(xs, reverse=True)[:2],
        "words": words,
        "longest": f"{longest} of {len(words)}",
    }


def variance(xs, ddof):
    if len(xs) <= ddof:
        return None
    exact = [Fraction(x) for x in xs]
    mean = sum(exact) / len(xs)
    return float(sum((x - mean) ** 2 for x in exact) / (len(xs) - ddof))


def ranked(xs, q):
    return xs[max(1, math.ceil(q * len(xs))) - 1] if xs else None


rows = st.tuples(
    st.sampled_from("abc"),
    st.none() | st.integers(-400, 400).map(lambda n: n / 8) | st.floats(1e6, 1.0000001e6),
    st.none() | st.sampled_from(["x", "yy", "zz", "é", ""]),
    st.integers(0, 20),
)
batches = st.lists(rows, min_size=1, max_size=8)
crashes = st.tuples(st.just("crash"), st.integers(1, 3))
scripts = st.lists(batches | crashes, max_size=8)


@given(scripts)
@settings(max_examples=15, deadline=None)
def test_aggregates_equal_their_definition_through_any_crash_and_rescale(script):
    found, wanted = run(script), model(script)
    assert found.keys() == wanted.keys()
    for at, values in wanted.items():
        for name, value in values.items():
            assert found[at][name] == about(name, value), (at, name)


def about(name, value):
    """Sketches and squares that were cut have a stated error; all else is exact."""
    if value is None:
        return None
    if name in ("median", "high"):
        return pytest.approx(value, rel=ACCURACY, abs=0)
    if name in ("variance", "spread"):
        return pytest.approx(value, rel=1e-15, abs=1e-14)
    return value


everything = st.lists(st.floats(allow_nan=False) | st.floats(-1e3, 1e3), min_size=1, max_size=20)


@given(everything, st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_neither_order_nor_batches_change_a_bit(values, random):
    rows = [("a", value, str(at % 3), at % 5) for at, value in enumerate(values)]
    shuffled = random.sample(rows, len(rows))
    cut = random.randrange(len(rows) + 1)
    parts = [part for part in (shuffled[:cut], shuffled[cut:]) if part]
    assert repr(run([rows])) == repr(run(parts))


def one(spec, *values):
    """The aggregate of some values, one batch each."""
    job = start({"it": spec})
    for at, value in enumerate(values):
        job.push([("a", value, None, at % SIZE)])
    job.advance(MAX_TIME)
    [row] = job.outputs()
    return row["it"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0], None),
        ([None, 1.0], None),
        ([0.1] * 5, 0.0),
        ([1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.3], statistics.variance([1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.3])),
        ([1e-9, 3e-9], 2e-18),
        ([1e200, -1e200], math.inf),
        ([1e150, -1e150], 2e300),
        ([math.inf, 1.0], math.nan),
        ([math.nan, 1.0], math.nan),
    ],
)
def test_variances_at_the_edges(values, expected):
    wanted = None if expected is None else pytest.approx(expected, rel=1e-15, nan_ok=True)
    assert one(agg.var("x"), *values) == wanted


@pytest.mark.parametrize(
    ("q", "expected"), [(0, -100.0), (0.25, -1.0), (0.5, 0.0), (0.75, 1.0), (1, 100.0)]
)
def test_quantiles_by_nearest_rank(q, expected):
    found = one(agg.quantile("x", q), -100.0, -1.0, 0.0, 1.0, 100.0)
    assert found == pytest.approx(expected, rel=0.01)


def test_a_quantile_of_infinity_is_infinity_and_nan_is_left_out():
    assert one(agg.quantile("x", 1), 1.0, math.inf, math.nan) == math.inf
    assert one(agg.quantile("x", 0), -math.inf, 1.0) == -math.inf
    assert one(agg.quantile("x", 0.5), math.nan) is None


def test_a_share_that_is_no_exact_float_does_not_move_the_rank():
    values = [float(number) for number in range(1, 101)]
    assert one(agg.quantile("x", 0.07, 1e-4), *values) == pytest.approx(7, rel=1e-4)


def test_zeros_of_both_signs_are_one_value():
    assert one(agg.n_unique("x"), -0.0, 0.0) == 1
    assert str(one(agg.first("x"), -0.0)) == "0.0"


def test_the_largest_values_leave_nan_out():
    assert one(agg.top_k("x", 2), 1.0, math.nan, 3.0, 2.0) == [3.0, 2.0]


def test_nothing_but_nulls_gives_nothing():
    nothing = {"distinct": 0, "median": None, "top": [], "words": [], "opened": None}
    for name, value in nothing.items():
        assert one(SPECS[name], None) == value


def stream():
    env = hw.Environment("aggregates")
    frame = pl.DataFrame(schema={**SCHEMA, "at": pl.Int64(), "tags": pl.List(pl.String)})
    source = MemorySource({"a": frame.drop("event_time")})
    times = hw.bounded_out_of_orderness(0, column="at")
    return env.source(source, watermarks=times).key_by("key").window(windows.tumbling("1s"))


class Forgetful(Longest):
    def create(self):
        return {"word": ""}


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: agg.var("word"), "aggregate 'it' cannot take the var of String; cast"),
        (lambda: agg.quantile("word", 0.5), "cannot take the quantile of String; cast"),
        (lambda: agg.first("tags"), r"cannot take the first of List\(String\)"),
        (lambda: agg.collect("tags"), r"cannot take the collect of List\(String\)"),
        (lambda: agg.last("nothing"), "nothing"),
        (lambda: agg.quantile("x", 1.5), "q of quantile is not a share: got 1.5"),
        (lambda: agg.quantile("x", 0.5, 0), "accuracy of quantile is out of range: got 0"),
        (lambda: agg.n_unique("tags", exact=False), r"cannot take the n_unique of List\(String\)"),
        (lambda: agg.top_k("x", 0), "k of top_k must be positive: got 0"),
        (lambda: agg.std("x", ddof=-1), "ddof of std is negative: got -1"),
        (lambda: agg.custom(max, "x"), "custom aggregate is not one: got <built-in"),
        (lambda: agg.custom(Forgetful(), "word"), "creates other fields than it declares"),
    ],
)
def test_what_does_not_fit_is_found_when_the_graph_is_built(declare, sentence):
    with pytest.raises(GraphError, match=sentence):
        stream().agg(it=declare())


def test_the_graph_knows_the_types_of_all_aggregates():
    schema = stream().agg(**SPECS).schema
    assert [schema[name] for name in SPECS] == [
        pl.Float64(),
        pl.String(),
        pl.Float64(),
        pl.Float64(),
        pl.Int64(),
        pl.Int64(),
        pl.Float64(),
        pl.Float64(),
        pl.List(pl.Float64()),
        pl.List(pl.String()),
        pl.String(),
    ]


class Broken(Longest):
    def add(self, fields, value):
        return {"word": value + 1, "seen": 0}


class Untyped(Longest):
    def result(self, fields):
        return 7


def test_a_function_that_raises_shows_its_value():
    job = start({"it": agg.custom(Broken(), "word")})
    with pytest.raises(FunctionError, match=r"'it' failed in add\(.*'abc'\): TypeError"):
        job.push([("a", 1.0, "abc", 1)])


def test_a_result_of_another_type_than_declared_is_refused():
    job = start({"it": agg.custom(Untyped(), "word")})
    job.push([("a", 1.0, "abc", 1)])
    with pytest.raises(FunctionError, match="aggregate 'it' gives what is not String"):
        job.advance(MAX_TIME)
