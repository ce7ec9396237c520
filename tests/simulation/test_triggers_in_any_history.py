"""Windows that keep their rows: as declared aggregates where both can be, and on either backend."""

from __future__ import annotations

import functools
import tempfile

import polars as pl
import pytest

import engine as hw
from engine import agg, evictors, triggers, windows
from engine.testing.readings import TIMES, source
from engine.testing.scenarios.triggers import SCENARIO, triggers_job
from engine.testing.simulation import CALM, simulate

WINDOWS = {
    "tumbling": windows.tumbling("2s", offset="300ms"),
    "sliding": windows.sliding("2s", "700ms"),
    "cumulative": windows.cumulative("2s", "500ms"),
    "session": windows.session("900ms"),
}
AGGREGATES = {"n": agg.count(), "total": agg.sum("value"), "last": agg.last("value")}


def job(name, parallelism, output):
    """The same windows by partials of slices and by rows."""
    env = hw.Environment("both", parallelism=parallelism, checkpoint_interval=None)
    window = env.source(source(), uid="readings", watermarks=TIMES).key_by("key")
    window = window.window(WINDOWS[name])
    by_rows = window.trigger(triggers.event_time())
    for table, each in {"slices": window, "rows": by_rows}.items():
        made = each.agg(**AGGREGATES, uid=table)
        made.sink(output.sink(table), uid=f"{table}-out")
        made.side_output("late").sink(output.sink(f"{table}-late"), uid=f"{table}-late-out")
    return env.graph()


@pytest.mark.parametrize("name", WINDOWS)
def test_aggregates_of_rows_are_those_of_slices(name):
    history = simulate(functools.partial(job, name), seed=1)
    tables = {table: history.output.table(table) for table in ("slices", "rows")}
    late = {table: history.output.table(f"{table}-late") for table in ("slices", "rows")}
    assert tables["rows"].height > 10
    assert tables["rows"].equals(tables["slices"])
    assert late["rows"].equals(late["slices"])
    assert late["rows"].height > 3


@pytest.mark.parametrize("seed", range(2))
def test_state_on_disk_gives_the_same_output(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    history = simulate(functools.partial(triggers_job, state_backend="rocksdb"), seed)
    assert SCENARIO.differs(history) is None


def in_order(rows, ctx):
    """The values as they come: a sum of them would hide their order."""
    return rows.select(n=pl.len().cast(pl.Int64), values=pl.col("value").implode())


def ordered(parallelism, output):
    """Each five rows of a key; sliding windows of their newest rows, corrected by late ones."""
    env = hw.Environment("ordered", parallelism=parallelism, checkpoint_interval=None)
    keyed = env.source(source(), uid="readings", watermarks=TIMES).key_by("key")
    kinds = {
        "fives": keyed.window(windows.global_()).trigger(triggers.purging(triggers.count(5))),
        "newest": keyed.window(windows.sliding("2s", "1s"))
        .allowed_lateness("1s", every="500ms")
        .evictor(evictors.time("1s")),
    }
    for table, window in kinds.items():
        told = window.apply(in_order, schema={"n": int, "values": pl.List(pl.Float64)}, uid=table)
        told.sink(output.sink(table), uid=f"{table}-out")
    return env.graph()


@pytest.mark.parametrize("seed", range(1, 3))
def test_rows_come_in_the_same_order_in_any_history(seed):
    wanted, found = simulate(ordered, 0, CALM).output, simulate(ordered, seed).output
    assert set(wanted.table("fives")["n"]) == {5}
    assert wanted.table("newest")["row_watermark"].is_not_null().sum() > 3
    for table in ("fives", "newest"):
        assert found.table(table).equals(wanted.table(table))
