"""Map with state: a count per user that ends after silence, in any history."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine.errors import ConfigError, FunctionError, GraphError
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.simulation import CALM, Chaos, simulate

ROWS = pl.DataFrame({"user": ["ann", "bob", "ann", "ann", "bob"], "at": [0, 1, 4, 15, 16]})


def count(state, row):
    return state + 1, row | {"n": state + 1}


def last(state, key):
    return {"user": key[0], "at": None, "n": -state}


def job(output, parallelism=1, function=count, **options):
    env = hw.Environment("counts", parallelism=parallelism, checkpoint_interval=None)
    times = hw.bounded_out_of_orderness("2us", column="at")
    options = {"initial_state": 0, "state_type": int, **options}
    schema = {"user": str, "at": int, "n": int}
    rows = env.source(MemorySource({"all": ROWS}, every=20_000), uid="rows", watermarks=times)
    counts = rows.key_by("user").map_with_state(function, schema=schema, uid="counts", **options)
    counts.sink(output.sink("out"), uid="out")
    return env.graph()


def run(seed=0, chaos=CALM, **options):
    history = simulate(lambda parallelism, out: job(out, parallelism, **options), seed, chaos)
    return sorted(history.output.table("out").select("event_time", "user", "n").rows())


def test_the_state_of_a_key_goes_from_row_to_row():
    assert [row[1:] for row in run()] == [
        ("ann", 1),
        ("bob", 1),
        ("ann", 2),
        ("ann", 3),
        ("bob", 2),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_silent_key_is_forgotten_with_a_last_row_in_any_history(seed):
    found = simulate(
        lambda parallelism, out: job(out, parallelism, timeout="10us", on_timeout=last), seed
    ).output.table("out")
    assert sorted(found.select("event_time", "user", "n").rows()) == [
        (0, "ann", 1),
        (1, "bob", 1),
        (4, "ann", 2),
        (11, "bob", -1),
        (14, "ann", -2),
        (15, "ann", 1),
        (16, "bob", 1),
        (25, "ann", -1),
        (26, "bob", -1),
    ]


def total(state, row):
    n = (state or 0) + 1
    return n, row | {"n": n}


KNOWN = pl.DataFrame({"visits": [40, 7], "user": ["ann", "eve"]})


@pytest.mark.parametrize("seed", range(3))
def test_keys_that_are_known_at_the_start_begin_with_their_state_in_any_history(seed):
    options = {"function": total, "initial_state": KNOWN}
    found = run(seed, Chaos(), **options)
    assert [row[1:] for row in found] == [
        ("ann", 41),
        ("bob", 1),
        ("ann", 42),
        ("ann", 43),
        ("bob", 2),
    ]


def test_a_known_key_that_was_forgotten_begins_anew_and_not_with_what_was_known():
    options = {"function": total, "initial_state": KNOWN, "timeout": "10us", "on_timeout": last}
    assert [row[1:] for row in run(**options) if row[1] == "ann"] == [
        ("ann", 41),
        ("ann", 42),
        ("ann", -42),
        ("ann", 1),
        ("ann", -1),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"initial_state": KNOWN.select("visits")},
            "need the columns user and one for the state: got visits",
        ),
        ({"initial_state": KNOWN.with_columns(x=1)}, "got visits, user, x"),
        ({"initial_state": pl.concat([KNOWN, KNOWN])}, r"name a key twice: got \('ann', 40\)"),
        (
            {"initial_state": KNOWN.with_columns(visits=pl.lit("many"))},
            "initial states do not fit keys and state: ",
        ),
        ({"function": 3}, "needs a function of state and row: got 3"),
        ({"timeout": 0}, "timeout must be positive: got 0"),
        ({"timeout": "soon"}, "timeout is not a length of time"),
        ({"on_timeout": last}, "has on_timeout but no timeout"),
        ({"initial_state": "x"}, "default of a state of Int64 does not fit: got 'x'"),
    ],
)
def test_a_mistake_is_refused_when_the_graph_is_built(options, sentence):
    with pytest.raises((GraphError, ConfigError), match=sentence):
        job(OutputTables(), **options)


def test_a_function_that_gives_no_state_is_refused_at_its_row():
    with pytest.raises(FunctionError, match=r"needs \(state, row\) from its function: got 7"):
        run(function=lambda state, row: 7)
