"""Every kind of window in whole jobs: through any history, the output of the undisturbed run."""

from __future__ import annotations

import functools

import polars as pl
import pytest

import engine as hw
from engine import agg, windows
from engine.errors import GraphError
from engine.testing.memory import MemorySource
from engine.testing.simulation import CALM, simulate

ROWS = 60
SECOND = 1_000_000


def visits(split):
    """Visits of three people, some far behind the others of their split."""
    late = [row % 7 * 400_000 + row % 4 * 1_500_000 if row % 5 == 0 else 0 for row in range(ROWS)]
    pauses = [row // 12 * 2 * SECOND for row in range(ROWS)]
    return pl.DataFrame(
        {
            "who": [f"{'abc'[row * 7 % 3]}" for row in range(ROWS)],
            "value": [((row * 37 + ord(split)) % 19 - 5) / 7 for row in range(ROWS)],
            "at": [
                row * 100_000 + pause - behind + 10 * SECOND + ord(split) % 7 * 33_000
                for row, behind, pause in zip(range(ROWS), late, pauses, strict=True)
            ],
        }
    )


def job(parallelism, output):
    env = hw.Environment(
        "visits", parallelism=parallelism, max_parallelism=12, checkpoint_interval=None
    )
    time = hw.bounded_out_of_orderness("300ms", column="at")
    source = MemorySource({name: visits(name) for name in "xyz"}, every=20_000)
    by_person = env.source(source, uid="visits", watermarks=time).key_by("who")

    def declare(name, windowed):
        result = windowed.agg(n=agg.count(), total=agg.sum("value"), uid=name)
        result.sink(output.sink(name), uid=f"{name}-out")
        late = result.side_output("late").select("who", "value", "at")
        late.sink(output.sink(f"{name}-late"), uid=f"{name}-late-out")
        return result

    declare("sliding", by_person.window(windows.sliding("2s", "500ms")))
    declare("session", by_person.window(windows.session("1200ms")))
    day = by_person.window(windows.cumulative("4s", "1s", offset="500ms"))
    corrected = declare("corrected", day.allowed_lateness("1s", every="500ms"))
    again = corrected.with_columns(everyone=pl.lit(1)).key_by("everyone")
    declare_again = again.window(windows.tumbling("1s")).allowed_lateness("2s")
    declare_again.agg(most=agg.max("n"), uid="again").select("most", "window_end").sink(
        output.sink("again"), uid="again-out"
    )
    return env.graph()


NAMES = ("sliding", "corrected", "session")
TABLES = ("again", *NAMES, *(f"{name}-late" for name in NAMES))


@functools.cache
def undisturbed():
    return tables(simulate(job, seed=0, chaos=CALM))


def tables(history):
    return {name: visible(history.output.table(name)) for name in TABLES}


def visible(table):
    """What a sink outside would write."""
    rows = table.drop("event_time", "row_watermark", strict=False)
    return rows.sort(rows.columns)


def test_the_undisturbed_run_gives_something_to_compare():
    assert {name: table.height > 1 for name, table in undisturbed().items()} == dict.fromkeys(
        TABLES, True
    )


def test_some_windows_were_corrected():
    table = undisturbed()["corrected"]
    assert table.height > table.select("who", "window_start", "window_end").n_unique()


@pytest.mark.parametrize("seed", range(3))
def test_any_history_gives_the_same_output(seed):
    for name, table in tables(simulate(job, seed)).items():
        assert table.equals(undisturbed()[name]), f"seed {seed} gave another {name!r}"


def by_person():
    source = MemorySource({"x": visits("x")})
    env = hw.Environment("visits")
    return env.source(source, watermarks=hw.monotonic(column="at")).key_by("who")


def test_a_global_window_takes_no_allowed_lateness():
    with pytest.raises(GraphError, match="window global takes no allowed lateness"):
        by_person().window(windows.global_()).allowed_lateness("1h")


def test_a_window_says_what_it_is_in_the_plan():
    window = by_person().window(windows.sliding("1m", "1s"))
    stream = window.allowed_lateness("1h", every="10m").agg(n=agg.count())
    facts = stream.outputs[0].node.operator.describe()
    assert facts["window"] == "sliding 1m by 1s, 1h late, again each 10m"
