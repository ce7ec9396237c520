"""Every kind of step in one job: through any history, the output of the undisturbed run."""

from __future__ import annotations

import functools

import polars as pl
import pytest

import engine as hw
from engine import agg, windows
from engine.testing.memory import MemorySource
from engine.testing.simulation import CALM, simulate

ROWS = 60


def orders(split):
    """Orders of two customers who are in this split only, so that theirs have one order."""
    return pl.DataFrame(
        {
            "customer": [f"{split}{row % 2}" for row in range(ROWS)],
            "amount": [((row * 37) % 19 - 5) / 7 for row in range(ROWS)],
            "at": [row * 100_000 - (row % 3) * 150_000 + 10**6 for row in range(ROWS)],
        }
    )


class Loyalty(hw.KeyedProcessFunction):
    spent = hw.ValueState(float, default=0.0)
    orders = hw.ValueState(int, default=0)

    def process(self, row, ctx):
        self.spent.set(self.spent.get() + row["amount"])
        self.orders.set(self.orders.get() + 1)
        if self.orders.get() % 5 == 0:
            yield row | {"spent": self.spent.get(), "orders": self.orders.get()}
        if self.orders.get() == 12:
            self.spent.clear()


def half(frame):
    return frame.with_columns(pl.col("amount") / 2)


def job(parallelism, output):
    env = hw.Environment(
        "orders", parallelism=parallelism, max_parallelism=12, checkpoint_interval=None
    )
    time = hw.bounded_out_of_orderness("300ms", column="at")
    source = MemorySource({name: orders(name) for name in "xyz"}, every=20_000)
    stream = env.source(source, uid="orders", watermarks=time)
    cheap = stream.filter(pl.col("amount") <= 0).map(lambda row: row | {"amount": 0.0})
    dear = stream.filter(lambda row: row["amount"] > 0).map_batches(half)
    # A union has no order of its own, so what follows it must not depend on one: windows do not.
    both = cheap.union(dear).select("customer", amount=pl.col("amount") * 3)
    bonus = (
        stream.select("customer", "amount")
        .key_by("customer")
        .process(
            Loyalty(),
            schema={"customer": str, "amount": float, "spent": float, "orders": int},
            uid="loyalty",
        )
        .rename({"spent": "total"})
        .drop("amount")
    )
    bonus.sink(output.sink("bonus"), uid="bonus")
    doubled = both.flat_map(lambda row: [row, row] if row["amount"] > 1 else [])
    seconds = (
        doubled.key_by("customer")
        .window(windows.tumbling("1s"))
        .agg(total=agg.sum("amount"), most=agg.max("amount"), uid="seconds")
    )
    (
        seconds.with_columns(everyone=pl.lit(1))
        .key_by("everyone")
        .window(windows.tumbling("3s", offset="1s"))
        .agg(mean=agg.mean("total"), least=agg.min("most"), who=agg.max("customer"), uid="all")
        .sink(output.sink("all"), uid="out")
    )
    return env.graph()


@functools.cache
def undisturbed():
    return tables(simulate(job, seed=0, chaos=CALM))


def tables(history):
    return history.output.table("bonus"), history.output.table("all")


def test_the_undisturbed_run_gives_something_to_compare():
    bonus, everyone = undisturbed()
    assert bonus.height == 3 * 2 * (ROWS // 2 // 5)
    assert everyone.height >= 3


@pytest.mark.parametrize("seed", range(6))
def test_any_history_gives_the_same_output(seed):
    found = tables(simulate(job, seed))
    for table, wanted in zip(found, undisturbed(), strict=True):
        assert table.equals(wanted), f"seed {seed} gave another output"
