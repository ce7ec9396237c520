"""Rows as objects of dataclasses, through every kind of record function, in any history."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Optional

import polars as pl
import pytest

import engine as hw
from engine.errors import FunctionError, GraphError
from engine.functions.row_class import row_class
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.simulation import CALM, Chaos, simulate

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Order:
    item: str
    amount: int
    at: datetime
    note: str | None = None


@dataclass(frozen=True)
class Priced:
    item: str
    total: float


@dataclass(slots=True)
class Price:
    item: str
    price: float


@dataclass
class Big:
    item: str
    amount: int


class Sorted(hw.ProcessFunction):
    side_outputs = {"big": Big}

    def process(self, order, ctx):
        if order.amount >= 30:
            ctx.emit(Big(order.item, order.amount), to="big")
        else:
            yield replace(order, note=f"at {ctx.event_time}")


class AtPrice(hw.CoProcessFunction):
    price = hw.ValueState(float, default=1.0)

    def process_left(self, order, ctx):
        yield Priced(order.item, order.amount * self.price.get())

    def process_right(self, price, ctx):
        self.price.set(price.price)


class Running(hw.KeyedProcessFunction):
    total = hw.ValueState(float, default=0.0)

    def process(self, priced, ctx):
        self.total.set(self.total.get() + priced.total)
        return [Priced(priced.item, self.total.get())]

    def on_timer(self, time, ctx):
        return None


class Marked(hw.KeyedBroadcastProcessFunction):
    prices = hw.BroadcastState(str, float)

    def process(self, order, ctx):
        yield Priced(order.item, self.prices.get(order.item, -1.0))

    def process_broadcast(self, price, ctx):
        self.prices.put(price.item, price.price)


async def asked(order):
    return Priced(order.item, order.amount + 0.5)


def counted(state, priced):
    return state + 1, Priced(priced.item, state + 1.0)


ORDERS = pl.DataFrame(
    {
        "item": ["tea", "milk", "tea", "tea", "milk"],
        "amount": pl.Series([1, 20, 3, 40, 5], dtype=pl.Int16),
        "at": [START] * 5,
        "note": [None, "x", None, None, "y"],
        "time": [1, 2, 3, 4, 5],
        "other": [0] * 5,
    }
)
PRICES = pl.DataFrame({"item": ["tea", "milk"], "price": [2.0, 0.5], "time": [0, 0]})


def job(output, parallelism=1):
    env = hw.Environment("orders", parallelism=parallelism, checkpoint_interval=None)
    times = hw.monotonic("time")
    orders = env.source(MemorySource({"all": ORDERS}, every=20_000), uid="orders", watermarks=times)
    prices = env.source(MemorySource({"all": PRICES}), uid="prices", watermarks=times)
    orders, prices = orders.rows_as(Order), prices.rows_as(Price)
    small = orders.process(Sorted(), uid="small")
    streams = {
        "small": small,
        "big": small.side_output("big"),
        "mapped": orders.filter(lambda order: order.amount > 2).map(
            lambda order: Priced(order.item, order.amount / 2), schema=Priced
        ),
        "notes": orders.flat_map(
            lambda order: [{"word": word} for word in (order.note or "")], schema={"word": str}
        ),
        "priced": orders.key_by("item")
        .connect(prices.key_by("item"))
        .process(AtPrice(), schema=Priced, ordered=True, uid="priced"),
        "marked": orders.key_by("item")
        .connect(prices.broadcast())
        .process(Marked(), schema=Priced, uid="marked"),
        "asked": orders.map_async(asked, schema=Priced, uid="asked"),
    }
    streams["running"] = streams["priced"].key_by("item").process(Running(), uid="running")
    streams["counted"] = (
        streams["mapped"]
        .key_by("item")
        .map_with_state(counted, initial_state=0, state_type=int, uid="counted")
    )
    for name, stream in streams.items():
        stream.sink(output.sink(name), uid=f"out {name}")
    return env.graph()


WANTED = {
    "small": [
        ("milk", 5, START, "at 5"),
        ("milk", 20, START, "at 2"),
        ("tea", 1, START, "at 1"),
        ("tea", 3, START, "at 3"),
    ],
    "big": [("tea", 40)],
    "mapped": [("milk", 2.5), ("milk", 10.0), ("tea", 1.5), ("tea", 20.0)],
    "notes": [("x",), ("y",)],
    "priced": [("milk", 2.5), ("milk", 10.0), ("tea", 2.0), ("tea", 6.0), ("tea", 80.0)],
    "marked": [("milk", 0.5), ("milk", 0.5), ("tea", 2.0), ("tea", 2.0), ("tea", 2.0)],
    "asked": [("milk", 5.5), ("milk", 20.5), ("tea", 1.5), ("tea", 3.5), ("tea", 40.5)],
    "running": [("milk", 10.0), ("milk", 12.5), ("tea", 2.0), ("tea", 8.0), ("tea", 88.0)],
    "counted": [("milk", 1.0), ("milk", 2.0), ("tea", 1.0), ("tea", 2.0)],
}


@pytest.mark.parametrize(("seed", "chaos"), [(0, CALM), (1, Chaos()), (2, Chaos())])
def test_rows_are_objects_of_their_class_in_every_kind_of_function(seed, chaos):
    history = simulate(lambda parallelism, output: job(output, parallelism), seed, chaos)
    for name, rows in WANTED.items():
        found = history.output.table(name)
        assert sorted(found.drop("event_time").rows()) == rows, name


def test_columns_have_the_types_of_the_annotations():
    @dataclass
    class Everything:
        whole: int
        share: float
        text: str
        flag: bool
        raw: bytes
        at: datetime
        small: Annotated[int, pl.Int16]
        maybe: Optional[int]  # noqa: UP045
        words: list[str]
        maybe_words: list[str | None] | None = None
        extra: str = field(default="x")

    made = row_class(local(Everything))
    assert dict(made.columns) == {
        "whole": pl.Int64(),
        "share": pl.Float64(),
        "text": pl.String(),
        "flag": pl.Boolean(),
        "raw": pl.Binary(),
        "at": pl.Datetime("us", "UTC"),
        "small": pl.Int16(),
        "maybe": pl.Int64(),
        "words": pl.List(pl.String()),
        "maybe_words": pl.List(pl.String()),
        "extra": pl.String(),
    }
    assert made.columns.keys() - made.required == {"maybe", "maybe_words"}


def local(given):
    """Annotations of a class in a function, read where their names are known."""
    names = globals() | {"Annotated": Annotated, "Optional": Optional}
    given.__annotations__ = {
        name: eval(hint, names) for name, hint in given.__annotations__.items()
    }
    return given


@pytest.fixture
def orders():
    env = hw.Environment("orders")
    return env.source(MemorySource({"all": ORDERS}), watermarks=hw.monotonic("time"))


@dataclass
class Unknown:
    item: str
    price: float


@dataclass
class Wrong:
    item: int


@dataclass
class Reserved:
    key_group: int


@dataclass
class Odd:
    item: dict[str, int]


@dataclass(kw_only=True)
class Named:
    item: str


@dataclass
class Nothing:
    pass


class Stateful(hw.ProcessFunction):
    seen = hw.ValueState(int)

    def process(self, row, ctx):
        return None


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda s: s.rows_as(Unknown), "class Unknown has the field 'price', which is no column"),
        (lambda s: s.rows_as(Wrong), "field 'item' of Wrong is another type than its column"),
        (lambda s: s.rows_as(Reserved), "has the reserved column 'key_group' as a field"),
        (lambda s: s.rows_as(dict), "rows need columns or a dataclass: got <class 'dict'>"),
        (lambda s: s.rows_as(Order(1, 2, 3)), "rows need columns or a dataclass: got Order"),
        (lambda s: s.rows_as(Nothing), "class Nothing has no fields"),
        (lambda s: s.map(max, schema=Odd), "field 'item' of Odd has no column type"),
        (lambda s: s.map(max, schema=Named), "field 'item' of Named is not an ordinary one"),
        (lambda s: s.map(7), "map needs a function of one row: got 7"),
        (lambda s: s.filter(7), "filter needs a function of one row: got 7"),
        (lambda s: s.process(Stateful()), "'Stateful' has the state 'seen', which the rows"),
        (lambda s: s.process(AtPrice()), "'AtPrice' has the state 'price'"),
        (lambda s: s.process(Sorted), "process needs a ProcessFunction .pass an object"),
        (lambda s: s.map_async(len), "map_async needs an asynchronous function: got 'len'"),
        (lambda s: s.map_async(asked, capacity=0), "capacity of map_async is out of range: got 0"),
        (lambda s: s.map_async(asked, timeout=0), "timeout of map_async must be positive: got 0"),
        (lambda s: s.map_async(asked, on_timeout=max), "has on_timeout but no timeout"),
    ],
)
def test_a_mistake_is_refused_when_the_graph_is_built(orders, mistake, sentence):
    with pytest.raises(GraphError, match=sentence):
        mistake(orders)


def test_classes_stay_with_their_streams(orders):
    rows = orders.rows_as(Order)
    same = rows.filter(pl.col("amount") > 1).rebalance().union(rows)
    assert same.row_class.made is Order
    assert rows.select("item").row_class is None
    assert rows.schema["amount"] == pl.Int16()
    assert "other" not in rows.schema


FAILURES = {
    "null in": (lambda row: row, {}, "takes rows as Order, whose field 'item' cannot be None: row"),
    "dict": (lambda row: {"item": "x"}, {}, "gave {'item': 'x'}: row .*; give rows as Order"),
    "none": (
        lambda row: Priced(row.item, None),
        {"schema": Priced},
        "gave None for 'total' of Priced, which cannot be None: row .*'item': 'tea'",
    ),
    "type": (
        lambda row: Priced(row.item, "much"),
        {"schema": Priced},
        "gave values of column 'total' that are not Float64, the first 'much': row .*'tea'",
    ),
    "raises": (lambda row: row.price, {}, "raised AttributeError: 'Order' object has no .*: row"),
}


@pytest.mark.parametrize(("function", "options", "sentence"), FAILURES.values(), ids=FAILURES)
def test_a_row_that_does_not_fit_fails_with_it(function, options, sentence, request):
    null = "null in" in request.node.name
    rows = ORDERS.with_columns(item=pl.lit(None, pl.String)) if null else ORDERS

    def build(parallelism, output):
        env = hw.Environment("orders", checkpoint_interval=None)
        stream = env.source(MemorySource({"all": rows})).rows_as(Order).map(function, **options)
        stream.sink(output.sink("out"))
        return env.graph()

    with pytest.raises(FunctionError, match=f"map '<lambda>' {sentence}"):
        simulate(build, 0, CALM)


def test_an_order_of_the_class_is_given_as_it_was_when_it_was_given():
    """A function may use one object for many rows."""

    def repeated(order):
        for amount in range(2):
            order.amount = amount
            yield order

    build = functools.partial(repeating, repeated)
    found = simulate(build, 0, CALM).output.table("out")
    assert sorted(found["amount"]) == [0] * 5 + [1] * 5


def repeating(function, parallelism: int, output: OutputTables):
    env = hw.Environment("orders", checkpoint_interval=None)
    env.source(MemorySource({"all": ORDERS})).rows_as(Order).flat_map(function).sink(
        output.sink("out")
    )
    return env.graph()
