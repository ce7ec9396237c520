"""Joins of streams with late rows, at odds in speed: any history, the same output."""

from __future__ import annotations

import functools
import tempfile

import polars as pl
import pytest

import engine as hw
from engine import windows
from engine.testing.memory import MemorySource
from engine.testing.simulation import CALM, Chaos, simulate

# A snapshot of this job has many files; most of them should become complete.
ROUGH = Chaos(storage_failure=0.002, parallelisms=(1, 2))

TABLES = ("same hour", "near", "priced", "late", "late prices", "per minute")


def trades(split):
    rows = range(30)
    return pl.DataFrame(
        {
            "item": [f"i{row * 7 % 5}" for row in rows],
            "trade": [f"{split}{row}" for row in rows],
            "at": [row * 80_000 + 900_000 - (row % 5 == 2) * 700_000 for row in rows],
        }
    )


def prices(split):
    rows = range(16)
    return pl.DataFrame(
        {
            "id": [f"i{row % 6}" for row in rows],
            "price": [row * 37 % 11 + len(split) for row in rows],
            "at": [row * 160_000 + 500_000 - (row % 7 == 3) * 600_000 for row in rows],
        }
    )


def names():
    return pl.DataFrame({"item": ["i1", "i2", "i3"], "name": ["one", "two", "three"]})


def job(parallelism, output, state_backend="memory"):
    env = hw.Environment(
        "joins",
        parallelism=parallelism,
        max_parallelism=12,
        checkpoint_interval=None,
        state_backend=state_backend,
    )
    times = hw.bounded_out_of_orderness("300ms", column="at")
    left = MemorySource({split: trades(split) for split in "xyz"}, every=30_000)
    right = MemorySource({split: prices(split) for split in "pq"}, every=50_000)
    items = env.source(left, uid="trades", watermarks=times).select("item", "trade").key_by("item")
    listed = env.source(right, uid="prices", watermarks=times).select("id", "price").key_by("id")

    hours = items.window_join(listed, windows.sliding("2s", "1s"), how="full", uid="hours")
    near = items.interval_join(listed, lower="-1s", upper="200ms", how="left", uid="near")
    priced = items.temporal_join(listed, how="left", defaults={"price": 0}, uid="priced")
    # A table that does not change gives the same whenever it is read.
    named = priced.lookup_join(names, on="item", every="100ms", how="left", uid="named")
    counted = priced.key_by("item").window(windows.tumbling("1s")).agg(n=hw.agg.count(), uid="n")
    results = (
        hours,
        near,
        named,
        priced.side_output("late"),
        priced.side_output("late_right"),
        counted,
    )
    for name, stream in zip(TABLES, results, strict=True):
        stream.sink(output.sink(name), uid=f"to {name}")
    counted.side_output("late").sink(output.sink("never"), uid="never")
    return env.graph()


@functools.cache
def undisturbed():
    return tables(simulate(job, seed=0, chaos=CALM))


def tables(history):
    assert history.output.table("never").is_empty()
    return [history.output.table(name) for name in TABLES]


def test_the_undisturbed_run_gives_something_to_compare():
    hours, near, priced, late, late_prices, counted = undisturbed()
    assert hours.height > 100
    assert 0 < near["price"].null_count() < near.height / 2
    assert priced.height + late.height == 90
    assert priced["price"].n_unique() > 5
    assert priced["name"].drop_nulls().unique().sort().to_list() == ["one", "three", "two"]
    assert 10 < late.height < 40
    assert late_prices.height > 3
    assert counted["n"].sum() == priced.height


@pytest.mark.parametrize("seed", range(3))
def test_any_history_gives_the_same_output(seed):
    found = tables(simulate(job, seed, ROUGH))
    for table, wanted in zip(found, undisturbed(), strict=True):
        assert table.equals(wanted), f"seed {seed} gave another output"


def test_the_other_backend_gives_the_same_output(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = tables(simulate(functools.partial(job, state_backend="rocksdb"), 7, ROUGH))
    for table, wanted in zip(found, undisturbed(), strict=True):
        assert table.equals(wanted)
