"""Steps on whole columns: what each gives, and what is refused because batches would show."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs
import pytest

import engine as hw
from engine.connectors.print import PrintSink
from engine.errors import GraphError
from engine.testing.memory import MemorySource

ORDERS = pl.DataFrame(
    schema={
        "id": pl.Int64(),
        "amount": pl.Float64(),
        "currency": pl.String(),
        "at": pl.Datetime("us", "UTC"),
        "items": pl.List(pl.String),
        "prices": pl.List(pl.Float64),
        "pair": pl.Array(pl.Int32, 2),
    }
)
amount = pl.col("amount")


@pytest.fixture
def orders():
    env = hw.Environment("orders")
    return env.source(MemorySource({"all": ORDERS}), uid="orders", watermarks=hw.monotonic("at"))


ACROSS = {
    "all columns": pl.all().reverse(),
    "two columns": pl.col("id", "amount").shift(),
    "columns of a type": cs.numeric().diff(),
    "columns by number": pl.nth(0).shift(),
    "over a key": amount.sum().over("currency"),
    "running sum": amount.cum_sum(),
    "sorted": amount.sort_by("id"),
    "rank": amount.rank(),
    "filled from before": amount.forward_fill(),
    "filled with a mean": amount.fill_null(strategy="mean"),
    "number of rows": pl.int_range(pl.len()),
    "first of its kind": pl.col("currency").is_first_distinct(),
    "member of the column": pl.col("id").is_in(pl.col("id").implode()),
    "rolling": amount.rolling_mean_by("at", "1h"),
    "deep inside": pl.struct(pl.when(amount > amount.max() / 2).then(pl.lit("high"))),
    "a function of the column": amount.map_batches(lambda column: column, return_dtype=pl.Float64),
    "shuffled": amount.shuffle(),
    "drawn from a list": pl.col("prices").list.sample(n=1, seed=1),
    "lists shuffled": pl.col("prices").list.eval(pl.element().shuffle(seed=1)),
    "date of a guessed format": pl.col("currency").str.to_date(),
}


@pytest.mark.parametrize("expression", ACROSS.values(), ids=ACROSS)
def test_an_expression_that_looks_across_rows_is_refused(orders, expression):
    for step in (lambda: orders.select(expression), lambda: orders.with_columns(expression)):
        with pytest.raises(GraphError, match="looks across rows") as caught:
            step()
        assert "\n" not in str(caught.value)


ROW_WISE = {
    "all columns": pl.all().exclude("event_time").is_null(),
    "columns of a type": cs.float() * 2,
    "text": pl.format("{} {}", amount, "currency").str.to_uppercase(),
    "time": pl.col("at").dt.truncate("1h"),
    "inside a list": pl.col("prices").list.eval(pl.element().cum_sum()),
    "sum of a list": pl.col("prices").list.sum(),
    "case": pl.when(amount > 1).then(pl.lit("high")).otherwise(pl.lit("low")).alias("level"),
    "several columns": pl.sum_horizontal("id", "amount").alias("sum"),
    "member of a list": pl.col("currency").is_in(["EUR", "USD"]),
    "a function of each value": amount.map_elements(round, return_dtype=pl.Int64),
}


@pytest.mark.parametrize("expression", ROW_WISE.values(), ids=ROW_WISE)
def test_an_expression_of_the_row_alone_is_taken(orders, expression):
    assert "event_time" in orders.select(expression).schema


def test_exploded_lists_have_the_type_of_their_elements(orders):
    exploded = orders.explode("items", "prices")
    assert exploded.schema == {**orders.schema, "items": pl.String(), "prices": pl.Float64()}
    assert orders.explode("pair").schema["pair"] == pl.Int32()


def test_a_split_has_a_side_output_for_each_predicate_and_goes_on_with_the_rest(orders):
    rest = orders.split({"big": amount > 1000, "foreign": pl.col("currency") != "EUR"}, uid="split")
    for stream in (rest, rest.side_output("big"), rest.side_output("foreign")):
        assert stream.schema == orders.schema
        stream.sink(PrintSink())
    (vertex,) = orders.env.graph().vertices
    tags = [operator.feeds[0].tag for operator in vertex.operators[2:]]
    assert tags == ["main", "big", "foreign"]


def test_a_side_output_is_there_too_when_the_rest_is_dealt_out(orders):
    rest = orders.split({"big": amount > 1000})
    assert rest.rebalance().side_output("big").schema == orders.schema


def test_map_batches_may_give_a_lazy_frame(orders):
    totals = orders.map_batches(lambda frame: frame.lazy().select(total=amount * 2))
    assert totals.schema == {"total": pl.Float64(), "event_time": pl.Int64()}


def test_a_stream_without_any_column_is_refused():
    env = hw.Environment("orders")
    timeless = env.source(MemorySource({"all": ORDERS}), uid="orders")
    for step in (lambda: timeless.select(), lambda: timeless.drop(*timeless.schema)):
        with pytest.raises(GraphError, match="leaves no column, so no rows would be left"):
            step()


REFUSED = {
    "date of a guessed format": (
        lambda s: s.select(day=pl.col("currency").str.to_date()),
        "select looks across rows: .*: pass a format",
    ),
    "explode text": (
        lambda s: s.explode("currency"),
        "explode needs lists: column 'currency' is String",
    ),
    "explode nothing": (lambda s: s.explode(), "explode names no column"),
    "explode an unknown column": (
        lambda s: s.explode("goods"),
        "explode names an unknown column: got 'goods'",
    ),
    "split to nothing": (lambda s: s.split({}), "split needs predicates by the name of"),
    "split to a list": (lambda s: s.split([amount > 1]), "split needs predicates by the name of"),
    "names in a list": (lambda s: s.drop(["id", "amount"]), "drop needs names of columns: got"),
    "another name for event time": (
        lambda s: s.rename({"event_time": "time"}),
        "rename names the reserved column 'event_time'; copy it",
    ),
    "a sink that is none": (lambda s: s.sink("files"), "sink needs a connector: got 'files'"),
    "a source that is none": (
        lambda s: s.env.source("files"),
        "source needs a connector: got 'files'",
    ),
    "a key twice": (lambda s: s.key_by("id", "id"), "key_by names a column twice: got 'id'"),
    "parallelism in words": (
        lambda s: s.drop("id", parallelism="two"),
        "parallelism of 'project' is out of range: got 'two'; pass 1 to 128",
    ),
    "a number as uid": (
        lambda s: s.drop("id", uid=7),
        "uid of a project is empty or no text: got 7",
    ),
    "split to main": (
        lambda s: s.split({"main": amount > 1}),
        "split cannot have a side output 'main'",
    ),
    "split by a number": (
        lambda s: s.split({"big": amount}),
        "split to 'big' needs one true or false per row: got Float64",
    ),
    "split across rows": (
        lambda s: s.split({"big": amount > amount.mean()}),
        "split to 'big' looks across rows",
    ),
    "no frame": (
        lambda s: s.map_batches(lambda frame: frame["id"]),
        "failed on an empty frame: TypeError: gave a Series instead of a frame",
    ),
    "key_by of a broadcast": (
        lambda s: s.broadcast().key_by("id"),
        r"key_by\(id\) of a broadcast stream would count each row once per subtask",
    ),
    "forward to another parallelism": (
        lambda s: s.forward().drop("id", uid="less", parallelism=2),
        "'less' cannot take rows forward: its parallelism 2 meets 1 of 'orders'",
    ),
}


@pytest.mark.parametrize(("mistake", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_step_that_cannot_be_is_refused(orders, mistake, sentence):
    with pytest.raises(GraphError, match=sentence) as caught:
        mistake(orders)
    assert "\n" not in str(caught.value)
