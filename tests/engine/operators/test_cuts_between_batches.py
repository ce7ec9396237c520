"""Where a stream is cut into batches does not show in what steps on columns give."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elements import ROW_WATERMARK
from engine.operators.columns.explode import Explode
from engine.operators.columns.filter import Filter
from engine.operators.columns.map_batches import MapBatches
from engine.operators.columns.project import Project
from engine.operators.columns.split import Split
from engine.operators.expressions import infer
from engine.testing.harness import OperatorHarness

SCHEMA = {"n": pl.Int64(), "text": pl.String(), "list": pl.List(pl.Int64), "event_time": pl.Int64()}

numbers = st.none() | st.integers(-5, 5)
rows = st.fixed_dictionaries(
    {
        "n": numbers,
        "text": st.none() | st.sampled_from(["", "a", "b 1", "ü"]),
        "list": st.none() | st.lists(numbers, max_size=3),
        "event_time": st.integers(0, 9),
        "behind": st.booleans(),
    }
)
n, text = pl.col("n"), pl.col("text")
EXPRESSIONS = {
    "double": n * 2,
    "case": pl.when(n > 0).then(text).otherwise(pl.lit("none")),
    "all": pl.sum_horizontal(pl.exclude("text", "list")),
    "words": text.str.split(" ").list.len(),
    "running": pl.col("list").list.eval(pl.element().cum_sum()),
    "known": n.is_in([1, 2]),
    "literal": pl.lit(7),
}


def sql(frame: pl.DataFrame) -> pl.LazyFrame:
    return pl.SQLContext(rows=frame).execute("SELECT *, n + 1 AS more FROM rows WHERE n > 0")


OPERATORS = {
    "project": Project(
        "select", [e.alias(name) for name, e in EXPRESSIONS.items()], [*EXPRESSIONS, "event_time"]
    ),
    "filter": Filter(pl.all_horizontal(pl.all().exclude("list").is_not_null())),
    "split": Split({"small": n < 0, "text": text.is_not_null(), "same": n == pl.col("event_time")}),
    "explode": Explode(["list"]),
    "map_batches": MapBatches(sql, "sql", {**SCHEMA, "more": pl.Int64()}),
}


def batches(given_rows, cuts):
    """The rows in batches, each with row watermarks only when one of its rows is behind."""
    edges = [0, *sorted({cut % (len(given_rows) + 1) for cut in cuts}), len(given_rows)]
    for start, end in pairwise(edges):
        frame = pl.DataFrame(given_rows[start:end], schema={**SCHEMA, "behind": pl.Boolean()})
        behind, frame = frame["behind"], frame.drop("behind")
        if behind.any():
            mark = pl.when(behind).then(pl.lit(9)).cast(pl.Int64)
            frame = frame.with_columns(mark.alias(ROW_WATERMARK))
        if frame.height:
            yield frame


def outcome(operator, given_rows, cuts):
    harness = OperatorHarness(operator)
    for frame in batches(given_rows, cuts):
        harness.push(frame)
    return {
        tag: [{ROW_WATERMARK: None, **row} for row in given]
        for tag, given in harness.outputs.items()
    }


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
@settings(max_examples=12, deadline=None)
@given(given_rows=st.lists(rows, max_size=12), cuts=st.lists(st.integers(0, 12), max_size=5))
def test_any_cut_gives_the_same_rows(operator, given_rows, cuts):
    assert outcome(operator, given_rows, cuts) == outcome(operator, given_rows, [])


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_these_expressions_are_allowed(expression):
    assert len(infer(SCHEMA, [expression.alias("made")], "select")) == 1
