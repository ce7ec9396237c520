"""Old output against new: equal to a comparison row by row, however it is cut into parts."""

from __future__ import annotations

from collections import Counter, defaultdict

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.replay.comparison.compare import HOUR_US, Terms, compare, span
from controlplane.replay.comparison.found import EXAMPLES, Verdict, total

SCHEMA = {"key": pl.String, "at": pl.Int64, "n": pl.Int64, "mean": pl.Float64}
TERMS = Terms(("key",), "at", {"mean": 0.5})
TIMES = [0, 1, HOUR_US - 1, HOUR_US, 3 * HOUR_US]

rows = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["a", "b", None]),
            "at": st.sampled_from(TIMES),
            "n": st.sampled_from([1, 2, None]),
            "mean": st.sampled_from([0.0, 0.5, 1.5, float("nan"), None]),
        }
    ),
    max_size=12,
)


def table(given_rows) -> pl.LazyFrame:
    return pl.LazyFrame(given_rows, schema=SCHEMA)


def found(old, new, *, since=0, until=10 * HOUR_US, at_a_time=100, terms=TERMS):
    return total(compare(table(old), table(new), terms, since, until, at_a_time))


def by_definition(old, new):
    """Row by row: counts per hour and verdict, and per kind of difference."""
    sides = [defaultdict(list), defaultdict(list)]
    for side, given_rows in zip(sides, (old, new), strict=True):
        for row in given_rows:
            side[row["key"], row["at"]].append((row["n"], row["mean"]))
        for values in side.values():
            values.sort(key=lambda pair: [_rank(value) for value in pair])
    hours, kinds = Counter(), Counter()
    for key in {*sides[0], *sides[1]}:
        ours, theirs = sides[0][key], sides[1][key]
        for turn in range(max(len(ours), len(theirs))):
            if turn >= len(theirs):
                kind = Verdict.ONLY_OLD, ()
            elif turn >= len(ours):
                kind = Verdict.ONLY_NEW, ()
            else:
                fields = _differing(ours[turn], theirs[turn])
                kind = (Verdict.CHANGED if fields else Verdict.EQUAL), fields
            hours[key[1] // HOUR_US * HOUR_US, kind[0]] += 1
            kinds[kind] += kind[0] is not Verdict.EQUAL
    return hours, +kinds


def _rank(value):
    """Polars' order: numbers, then NaN, then nulls."""
    return (value is None, value != value, 0 if value is None or value != value else value)


def _differing(old, new):
    (n_old, mean_old), (n_new, mean_new) = old, new
    same = mean_old is mean_new or (mean_old != mean_old and mean_new != mean_new)
    near = same or (
        mean_old is not None and mean_new is not None and abs(mean_old - mean_new) <= 0.5
    )
    return (*(("n",) if n_old != n_new else ()), *(() if near else ("mean",)))


@settings(deadline=None, max_examples=50)
@given(rows, rows, st.sampled_from([1, 3, 100]))
def test_it_is_what_a_look_at_each_row_says(old, new, at_a_time):
    hours, kinds = by_definition(old, new)
    made = found(old, new, at_a_time=at_a_time)

    told = {
        (hour, verdict): count
        for hour, counts in made.hours.items()
        for verdict, count in zip(Verdict, counts, strict=True)
        if count
    }
    assert told == hours
    assert {kind: group.rows for kind, group in made.groups.items()} == kinds


@settings(deadline=None, max_examples=30)
@given(rows, rows, st.sampled_from(TIMES))
def test_parts_add_up_to_the_whole(old, new, cut):
    parts = found(old, new, until=cut).plus(found(old, new, since=cut))
    whole = found(old, new)
    assert parts.hours == whole.hours
    assert str(parts.groups) == str({kind: whole.groups[kind] for kind in parts.groups})


def row(key="a", at=0, n=1, mean=0.0):
    return {"key": key, "at": at, "n": n, "mean": mean}


def test_an_example_has_what_differs_and_nothing_else():
    made = found([row(n=1, mean=0.0), row(key="b")], [row(n=2, mean=0.5)])
    changed = made.groups[Verdict.CHANGED, ("n",)]
    assert changed.examples == ({"at": 0, "keys": {"key": "a"}, "old": {"n": 1}, "new": {"n": 2}},)
    gone = made.groups[Verdict.ONLY_OLD, ()]
    assert gone.examples[0]["old"] == {"n": 1, "mean": 0.0}
    assert gone.examples[0]["new"] is None


def test_examples_are_few_and_the_earliest():
    many = [row(at=at) for at in range(100)]
    group = found(many, [], at_a_time=10).groups[Verdict.ONLY_OLD, ()]
    assert [one["at"] for one in group.examples] == list(range(EXAMPLES))
    assert (group.rows, group.first_us) == (100, 0)


def test_columns_of_one_side_are_not_compared():
    old = table([row()]).drop("mean")
    made = total(compare(old, table([row(mean=7.0)]), TERMS, 0, 1))
    assert made.count(Verdict.EQUAL) == made.compared == 1


def test_another_type_of_number_is_the_same_number_and_text_is_not():
    old, new = table([row(n=1)]), table([row(n=1)])
    as_float = new.with_columns(pl.col("n").cast(pl.Float64))
    assert total(compare(old, as_float, TERMS, 0, 1)).count(Verdict.EQUAL) == 1
    as_text = new.with_columns(pl.lit("one").alias("n"))
    assert total(compare(old, as_text, TERMS, 0, 1)).count(Verdict.CHANGED) == 1


def test_the_result_of_a_window_belongs_to_its_last_microsecond():
    ends = pl.LazyFrame({"key": ["a"], "window_end": [HOUR_US], "n": [1]}).with_columns(
        pl.col("window_end").cast(pl.Datetime("us", "UTC"))
    )
    terms = Terms(("key",), "window_end")
    assert span(ends, terms) == (HOUR_US - 1, HOUR_US - 1)
    assert total(compare(ends, ends, terms, 0, HOUR_US)).hours == {0: (1, 0, 0, 0)}
    assert span(ends.clear(), terms) is None
