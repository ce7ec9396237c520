"""States that change between two versions of a job: what is kept, widened, added, dropped."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as hw
from engine import agg, windows
from engine.aggregates import AggregateFunction
from engine.aggregates.partials import Partials
from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import Outcome, check_restore
from engine.checkpoint.restoring.migration import ColumnMove, NoMigration, holds, migration
from engine.checkpoint.restoring.renames import Renames, parse_renames
from engine.elements import KEY_GROUP, MIN_TIME, SnapshotKind
from engine.errors import RestoreError
from engine.graph.jobgraph import JobGraph
from engine.graph.plan import StatePlan, plan_of
from engine.state.contract import StateKind
from engine.state.schema import type_name
from engine.testing.memory import OutputTables
from engine.testing.readings import TIMES, source
from engine.testing.simulation import CALM, Chaos, simulate

COLUMNS = {"n": "Int32", "at": "Int64"}


def migrate(
    wanted: Mapping[str, str],
    defaults: Mapping[str, object] | None = None,
    kind: StateKind = StateKind.VALUE,
    stored: Mapping[str, str] = COLUMNS,
    renamed: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    entry = StateEntry("s", kind, {"k": "Int32"}, stored)
    plan = StatePlan("s", kind.value, {"k": "Int64"}, wanted, defaults or {})
    columns = {KEY_GROUP: [3, 4], "k": [1, 2], "n": [7, 8], "at": [9, 10]}
    narrow = {KEY_GROUP: pl.UInt16, "k": pl.Int32, "n": pl.Int32}
    rows = pl.DataFrame(columns, schema_overrides=narrow)
    return migration(entry, plan, renamed).apply(rows)


def test_columns_and_keys_are_widened() -> None:
    rows = migrate({"n": "Int64", "at": "Int64"})
    assert rows.schema == {
        KEY_GROUP: pl.UInt16, "k": pl.Int64, "n": pl.Int64, "at": pl.Int64
    }  # fmt: skip
    assert rows.rows() == [(3, 1, 7, 9), (4, 2, 8, 10)]


@pytest.mark.parametrize("default", [None, 5, [1, 2]])
def test_a_new_column_has_its_default_in_every_row(default: object) -> None:
    dtype = "List(Int64)" if isinstance(default, list) else "Int64"
    rows = migrate({**COLUMNS, "more": dtype}, {"more": default})
    assert rows.get_column("more").to_list() == [default, default]


def test_columns_are_dropped_and_renamed() -> None:
    rows = migrate({"count": "Int32"}, renamed={"n": "count"})
    assert rows.columns == [KEY_GROUP, "k", "count"]
    assert rows.get_column("count").to_list() == [7, 8]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"n": "Int16", "at": "Int64"}, "changes column 'n' to a type that does not hold"),
        ({"n": "String", "at": "Int64"}, "changes column 'n' to a type that does not hold"),
        ({**COLUMNS, "more": "Int64"}, "has a new column 'more' without a default"),
    ],
)
def test_what_would_lose_values_is_refused(wanted: Mapping[str, str], reason: str) -> None:
    with pytest.raises(NoMigration, match=reason):
        migrate(wanted)


def test_an_aggregate_that_is_kept_in_another_way_is_refused() -> None:
    with pytest.raises(NoMigration, match="keeps 'sum' in another way"):
        migrate({"sum.0": "Int64"}, {"sum.0": 0}, StateKind.RUNS, {"sum": "Int64"})


@pytest.mark.parametrize(
    ("wide", "narrow", "fits"),
    [
        ("Int64", "UInt32", True),
        ("UInt64", "Int8", False),
        ("UInt64", "UInt8", True),
        ("Int32", "UInt32", False),
        ("Float64", "Int32", True),
        ("Float64", "Int64", False),
        ("Float32", "Float64", False),
        ("List(Int64)", "List(Int16)", True),
        ("String", "Int8", False),
    ],
)
def test_a_type_holds_another_when_no_value_changes(wide: str, narrow: str, fits: bool) -> None:
    assert holds(wide, narrow) is fits


@pytest.mark.parametrize("default", [None, 1, "x", [1.5]])
def test_moves_survive_the_wire(default: object) -> None:
    move = ColumnMove("n", "Int64", None, default)
    assert ColumnMove.from_json(json.loads(json.dumps(move.to_json()))) == move


class Span(AggregateFunction):
    fields = {"low": int, "high": int}
    result_type = int

    def create(self):
        return {"low": 10**9, "high": -(10**9)}

    def add(self, fields, value):
        return {"low": min(fields["low"], int(value)), "high": max(fields["high"], int(value))}

    def merge(self, one, other):
        return {"low": min(one["low"], other["low"]), "high": max(one["high"], other["high"])}

    def result(self, fields):
        return fields["high"] - fields["low"]


ALL = {
    "n": agg.count("x"),
    "total": agg.sum("x"),
    "mean": agg.mean("x"),
    "low": agg.min("x"),
    "high": agg.max("x"),
    "first": agg.first("x"),
    "last": agg.last("x"),
    "std": agg.std("x"),
    "unique": agg.n_unique("x"),
    "middle": agg.quantile("x", 0.5),
    "top": agg.top_k("x", 2),
    "list": agg.collect("x"),
    "span": agg.custom(Span(), "x"),
}


@given(st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_the_partial_of_no_values_changes_nothing(values: list[float | None]) -> None:
    rows = pl.DataFrame(
        {"x": values, "event_time": range(len(values)), "k": [1] * len(values)},
        schema={"x": pl.Float64, "event_time": pl.Int64, "k": pl.Int64},
    )
    for name, one in ALL.items():
        value = rows.select(one.of.alias("v")).schema["v"]
        partials = Partials({name: one.accumulator(name, value)}, {name: one.of})
        ends = pl.Series("slice_end", [1] * rows.height)
        stored = partials.of_rows(rows, ends, ["k"]).select("k", *partials.columns)
        assert set(partials.defaults) == set(partials.columns)
        nothing = stored.select(
            "k",
            *(
                ColumnMove(column, type_name(stored.schema[column]), None, default).expression
                for column, default in partials.defaults.items()
            ),
        )
        merged = partials.merge(pl.concat([stored, nothing]), ["k"], [])
        for result, wanted in zip(partials.results(merged), partials.results(stored), strict=True):
            assert result.equals(wanted, null_equal=True), name


def job(version: int, parallelism: int, output: OutputTables) -> JobGraph:
    """Sums; from version 2 on with the largest value too, and without the count."""
    env = hw.Environment("sums", parallelism=parallelism, checkpoint_interval=None)
    keyed = env.source(source(), uid="readings", watermarks=TIMES).key_by("key")
    window = keyed.window(windows.tumbling("5s"))
    total = agg.sum("value")
    if version == 1:
        sums = window.agg(n=agg.count(), total=total, uid="sums")
    else:
        sums = window.agg(total=total, most=agg.max("value"), uid="sums")
    sums.sink(output.sink("sums"), uid="out")
    return env.graph()


STOPS = Chaos(crash=0, stop=0.3, storage_failure=0, spell=0)


def test_a_job_goes_on_with_other_aggregates() -> None:
    columns = ["key", "window_start", "total"]
    wanted = simulate(lambda p, output: job(1, p, output), 0, CALM).output.table("sums")
    stopped = most = 0
    for seed in range(8):
        attempts = itertools.count(1)

        def build(
            parallelism: int, output: OutputTables, attempts: Iterator[int] = attempts
        ) -> JobGraph:
            return job(min(2, next(attempts)), parallelism, output)

        history = simulate(build, seed, STOPS)
        found = history.output.table("sums")
        assert found.select(columns).sort(columns).equals(wanted.select(columns).sort(columns))
        # A history that ends before it is stopped has only seen the first version.
        stopped += history.stops > 0
        most += found.get_column("most").count() if "most" in found.columns else 0
    assert stopped > 3
    assert most > 0


@pytest.fixture
def manifest() -> Manifest:
    """What version 1 would store: one state with an aggregate that version 2 does not know."""
    plan = plan_of(job(1, 1, OutputTables()))
    operators = []
    for vertex in plan.vertices:
        for operator in vertex.operators:
            states = tuple(
                StateEntry(state.name, StateKind(state.kind), state.keys, state.values)
                for state in operator.states
            )
            operators.append(
                OperatorEntry(operator.uid, operator.name, vertex.id, 1, 128, MIN_TIME, states)
            )
    return Manifest(
        "f" * 32, "sums", plan.hash, 1, SnapshotKind.SAVEPOINT, 0, "1", tuple(operators)
    )


def test_the_preflight_says_what_becomes_of_each_column(manifest: Manifest) -> None:
    report = check_restore(manifest, plan_of(job(2, 1, OutputTables())))
    row = next(row for row in report.rows if row.state == "slices")
    assert row.outcome is Outcome.MIGRATES
    assert row.reason == "adds most, for open windows from now on; drops n"


def test_operators_states_and_columns_are_found_under_new_names(manifest: Manifest) -> None:
    before = {"sums": "totals", "totals/slices": "panes", "totals/panes/n": "count"}
    renamed = Renames(before).applied(manifest)
    entry = renamed.operator("totals")
    assert entry is not None
    assert [state.name for state in entry.states] == ["panes"]
    assert Renames(before).columns("totals", "panes") == {"n": "count"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("sum=totals", "rename fits nothing in the snapshot: got 'sum'"),
        ("sums/slice=panes", "rename fits nothing in the snapshot: got 'sums/slice'"),
        ("sums=readings", "two operators of the snapshot would be 'readings'"),
        ("sums", "rename must be old=new: got 'sums'"),
        ("=sums", "rename must be old=new: got '=sums'"),
    ],
)
def test_a_rename_that_means_nothing_is_refused(
    manifest: Manifest, given: str, sentence: str
) -> None:
    with pytest.raises(RestoreError, match=sentence):
        parse_renames([given]).applied(manifest)


def test_one_state_alone_may_be_allowed_to_be_lost(manifest: Manifest) -> None:
    (sums,) = (entry for entry in manifest.operators if entry.uid == "sums")
    more = StateEntry("more", StateKind.VALUE, {"key": "String"}, {"value": "Int64"})
    entries = [
        replace(entry, states=(*entry.states, more)) if entry is sums else entry
        for entry in manifest.operators
    ]
    manifest = replace(manifest, operators=tuple(entries))
    plan = plan_of(job(1, 1, OutputTables()))
    (row,) = check_restore(manifest, plan).refused
    assert "allow sums/more as non-restored" in row.sentence
    assert check_restore(manifest, plan, {"sums/slices"}).refused
    assert not check_restore(manifest, plan, {"sums/more"}).refused
