"""Columns that come and go with batches: no expression of an author may see them."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine import agg, windows
from engine.errors import FunctionError
from engine.testing.coordination import JobFailed
from engine.testing.memory import MemorySource
from engine.testing.simulation import CALM, simulate

ROWS = pl.DataFrame({"key": ["a"] * 4, "text": ["1", "2", "3", "4"], "time": [0, 5, 1, 30]})
TIME = hw.monotonic("time", unit="s")


def windowed(aggregate):
    def build(parallelism, output):
        env = hw.Environment("hidden", parallelism=parallelism)
        rows = env.source(MemorySource({"all": ROWS}), uid="rows", watermarks=TIME)
        window = rows.key_by("key").window(windows.tumbling("10s"))
        window.agg(n=aggregate, uid="window").sink(output.sink("out"), uid="out")
        return env.graph()

    return simulate(build, seed=0, chaos=CALM).output.table("out")


def test_an_aggregate_of_all_columns_does_not_see_row_watermarks():
    others = pl.exclude("key", "text", "event_time")
    assert windowed(agg.sum(pl.sum_horizontal(others)))["n"].to_list() == [6, 30]


def test_an_aggregate_whose_values_do_not_fit_shows_a_row():
    with pytest.raises((FunctionError, JobFailed)) as caught:
        windowed(agg.max(pl.col("text").str.to_date("%Y-%m-%d")))
    assert "aggregate of n failed: " in str(caught.value) + str(caught.value.__cause__)
