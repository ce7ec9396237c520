"""Sessions of any aggregates and values: the bits of aggregating each session's rows at once."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import agg, kernels, windows
from engine.aggregates import Partials
from engine.elements import MAX_TIME
from engine.kernels import keyslots, loading
from engine.operators.windows import session_table
from engine.operators.windows.session_aggregate import (
    PartialSessions,
    SessionAggregate,
    session_partials,
)
from engine.operators.windows.session_table import FIRST, LAST, SessionTable
from fixtures.window_job import WindowJob, play

GAP = 4
SCHEMA = {
    "key": pl.String(),
    "place": pl.Int64(),
    "value": pl.Float64(),
    "event_time": pl.Int64(),
}
KEYS = {"key": pl.String(), "place": pl.Int64()}
SPECS = {
    "n": (agg.count("value"), pl.Float64()),
    "total": (agg.sum("value"), pl.Float64()),
    "mean": (agg.mean("value"), pl.Float64()),
    "most": (agg.max("value"), pl.Float64()),
    "spread": (agg.std("value"), pl.Float64()),
    "times": (agg.collect("event_time"), pl.Int64()),
    "median": (agg.quantile("value", 0.5), pl.Float64()),
}
NUMBERS = [0.1, -0.0, 0.0, -7.25, 1e300, -1e300, 2.0**60, 5e-324, math.inf, -math.inf, math.nan]


@pytest.fixture(params=["roomy", "cramped"], scope="module", autouse=True)
def _table(request):
    """With all bounds of the table so low that it is made anew all the time, and without."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cramped":
            kernels.load()
            patch.setattr(keyslots, "_FEW_KEYS", 0)
            patch.setattr(session_table, "MOST_ROWS", 3)
            patch.setattr(session_table, "_MOST_FRAMES", 1)
        yield
        loading._Using.kernels = loading.plain


def partials(names):
    return (
        {name: SPECS[name][0].accumulator(name, SPECS[name][1]) for name in names},
        {name: SPECS[name][0].of for name in names},
    )


def run(names, script):
    """The results of all sessions as text, which tells all bits."""
    parts = partials(names)
    fragments, window = session_partials(*parts), windows.session(GAP)

    def start():
        operator = SessionAggregate(KEYS, window, fragments, Partials(*parts))
        return WindowJob((PartialSessions(list(KEYS), window, fragments), operator), SCHEMA)

    outputs, late = play(start, script)
    assert not late
    return sorted(repr([row[name] for name in (*KEYS, *names)]) for row in outputs)


def model(names, script):
    """Sort the rows of each key, cut where the gap is reached, aggregate."""
    numbered, number, before = [], 0, None
    for row in sorted((row for step in script if isinstance(step, list) for row in step), key=time):
        if before is None or row[:2] != before[:2] or row[3] - before[3] >= GAP:
            number += 1
        numbered.append((number, *row))
        before = row
    frame = pl.DataFrame(numbered, schema={"session": pl.Int64(), **SCHEMA}, orient="row")
    made = Partials(*partials(names))
    merged = made.of_rows(frame, frame["session"].alias("slice_end"), list(KEYS), [])
    columns = [merged[name].to_list() for name in KEYS]
    columns += [column.to_list() for column in made.results(merged)]
    return sorted(repr(list(row)) for row in zip(*columns, strict=True))


def time(row):
    return (row[:2], row[3])


rows = st.tuples(
    st.sampled_from("ab"),
    st.integers(0, 1),
    st.none() | st.sampled_from(NUMBERS),
    st.integers(0, 12),
)
steps = st.tuples(st.lists(rows, max_size=6), st.integers(0, 6), st.booleans())


@given(st.lists(steps, max_size=6), st.sets(st.sampled_from(sorted(SPECS)), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_sessions_have_the_bits_of_their_rows(plan, names):
    """Rows come up to twelve after the watermark, in any order, through crashes."""
    script, now = [], 0
    for found, further, crash in plan:
        script.append([(*row[:3], now + row[3]) for row in found])
        now += further
        script += [now, ("crash", 2)] if crash else [now]
    script = [step for step in script if step != []]
    assert run(sorted(names), script) == model(sorted(names), script)


def test_keys_that_are_forgotten_come_again():
    table = SessionTable(["key"], GAP, Partials(*partials(["n"])), 128)
    many = range(70_000)
    fragments = pl.DataFrame({"key": many, FIRST: 0, LAST: 1, "n": 1}).cast(pl.Int64)
    for begin in (0, 100):
        later = fragments.head(5 if begin else 70_000).with_columns(
            pl.col(FIRST) + begin, pl.col(LAST) + begin
        )
        table.add(later)
        assert table.close(begin) is None
        assert table.close(begin + 1).drop("key_group").equals(later)
    assert table.close(MAX_TIME) is None
