"""Orders priced by a broadcast price list: any history, any parallelism, the same output."""

from __future__ import annotations

import functools
import tempfile

import polars as pl
import pytest

import engine as hw
from engine.errors import FunctionError, GraphError
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.simulation import CALM, simulate

ORDERS = {
    split: pl.DataFrame(
        {
            "user": [f"u{row % 5}" for row in range(30)],
            "item": [f"i{row % 3}" for row in range(30)],
            "at": [row * 100 + offset for row in range(30)],
        }
    )
    for offset, split in enumerate("xy")
}
PRICES = {
    split: pl.DataFrame(
        {
            "item": [f"i{row % 3}" for row in range(12)],
            "price": [row * 10 + offset for row in range(12)],
            "at": [row * 250 + offset * 2 for row in range(12)],
        }
    )
    for offset, split in enumerate("pq")
}
TIMES = hw.bounded_out_of_orderness("50us", column="at")


class Priced(hw.KeyedBroadcastProcessFunction):
    """The price of each order's time, and how many its user has had; told again 1 ms later."""

    prices = hw.BroadcastState(str, int)
    orders = hw.ValueState(int, default=0)

    def process(self, row, ctx):
        self.orders.set(self.orders.get() + 1)
        ctx.register_event_time_timer(ctx.event_time + 1000)
        yield self.told(row["user"], row["item"])

    def process_broadcast(self, row, ctx):
        if row["price"] % 70 == 0:
            self.prices.remove(row["item"])
        else:
            self.prices.put(row["item"], row["price"])

    def on_timer(self, time, ctx):
        yield self.told(ctx.key[0], "i0")

    def told(self, user, item):
        return {"user": user, "price": self.prices.get(item, -1), "n": self.orders.get()}


def job(parallelism, output, function=None, state_backend="memory", **options):
    env = hw.Environment(
        "orders",
        parallelism=parallelism,
        max_parallelism=12,
        checkpoint_interval=None,
        state_backend=state_backend,
    )
    orders = env.source(MemorySource(ORDERS, every=9_000), uid="orders", watermarks=TIMES)
    prices = env.source(MemorySource(PRICES, every=20_000), uid="prices", watermarks=TIMES)
    priced = (
        orders.key_by("user")
        .connect(prices.broadcast())
        .process(
            function or Priced(),
            schema={"user": str, "price": int, "n": int},
            uid="priced",
            **options,
        )
    )
    priced.sink(output.sink("out"), uid="out")
    return env.graph()


@functools.cache
def undisturbed():
    return simulate(job, seed=0, chaos=CALM).output.table("out")


def test_an_order_has_the_price_of_its_time():
    prices = pl.concat(PRICES.values()).sort("at")
    wanted = []
    for order in pl.concat(ORDERS.values()).filter(pl.col("at") < 1000).to_dicts():
        told = prices.filter((pl.col("at") <= order["at"]) & (pl.col("item") == order["item"]))
        price = told["price"].last() if told.height else -1
        wanted.append((order["at"], order["user"], price if price % 70 else -1))
    found = undisturbed().filter(pl.col("event_time") < 1000)
    assert sorted(found.select("event_time", "user", "price").rows()) == sorted(wanted)
    assert len({price for _, _, price in wanted}) > 5


@pytest.mark.parametrize("seed", range(6))
def test_any_history_gives_the_same_output(seed):
    found = simulate(job, seed).output.table("out")
    assert found.equals(undisturbed()), f"seed {seed} gave another output"


def test_state_on_disk_gives_the_same_output(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = simulate(functools.partial(job, state_backend="rocksdb"), 1).output.table("out")
    assert found.equals(undisturbed())


class Deeds(hw.KeyedBroadcastProcessFunction):
    prices = hw.BroadcastState(str, int)
    orders = hw.ValueState(int)

    def __init__(self, on_order=lambda f, ctx: None, on_price=lambda f, ctx: None):
        self.on_order, self.on_price = on_order, on_price

    def process(self, row, ctx):
        self.on_order(self, ctx)

    def process_broadcast(self, row, ctx):
        self.on_price(self, ctx)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (Deeds(on_order=lambda f, _: f.prices.put("a", 1)), "write it in process_broadcast"),
        (Deeds(on_order=lambda f, _: f.prices.clear()), "write it in process_broadcast"),
        (Deeds(on_price=lambda f, _: f.orders.get()), r"ValueState\(.*was used outside of a row"),
        (
            Deeds(on_price=lambda _, ctx: ctx.register_event_time_timer(5)),
            "uses a timer of no key; rows that are broadcast or not keyed cannot have any",
        ),
    ],
)
def test_what_would_differ_between_subtasks_is_refused(function, sentence):
    with pytest.raises(FunctionError, match=sentence):
        simulate(functools.partial(job, function=function), 0, CALM)


class Keyed(hw.KeyedProcessFunction):
    prices = hw.BroadcastState(str, int)

    def process(self, row, ctx):
        return None


def test_a_broadcast_state_needs_a_broadcast_function():
    env = hw.Environment("orders")
    orders = env.source(MemorySource(ORDERS), uid="orders", watermarks=TIMES)
    with pytest.raises(GraphError, match="'prices' of 'Keyed' is a broadcast state; only a Keyed"):
        orders.key_by("user").process(Keyed())
    with pytest.raises(GraphError, match="process needs a KeyedBroadcastProcessFunction: got"):
        orders.key_by("user").connect(orders.broadcast()).process(Keyed())


def test_broadcast_rows_pass_one_subtask_and_then_go_to_all():
    graph = job(3, OutputTables())
    [edge] = [edge for edge in graph.edges if edge.partitioning.value == "broadcast"]
    vertices = {vertex.id: vertex for vertex in graph.vertices}
    assert vertices[edge.source].parallelism == 1
    assert vertices[edge.target].parallelism == 3
