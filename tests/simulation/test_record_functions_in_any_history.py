"""Record functions with state, over two inputs, one of them without event time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

import engine as hw
from engine.graph.jobgraph import JobGraph
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.simulation import CALM, simulate


class Numbered(hw.CoProcessFunction):
    """Number the rows of each key, those of the left and of the right input apart."""

    lefts = hw.ValueState(int, default=0)
    rights = hw.ValueState(int, default=0)

    def process_left(self, row: dict[str, Any], ctx: object) -> Iterator[dict[str, Any]]:
        self.lefts.set(self.lefts.get() + 1)
        yield {"key": row["key"], "n": row["n"], "side": "left", "nth": self.lefts.get()}

    def process_right(self, row: dict[str, Any], ctx: object) -> Iterator[dict[str, Any]]:
        self.rights.set(self.rights.get() + 1)
        numbered = {"key": row["key"], "n": row["n"], "side": "right", "nth": self.rights.get()}
        yield numbered | {"event_time": row["n"]}


def rows(start: int, count: int, name: str) -> pl.DataFrame:
    """Each split has keys of its own, so that a key's rows have one order."""
    numbers = range(start, start + count)
    return pl.DataFrame({"n": numbers, "key": [f"{name}{n * 7 % 5}" for n in numbers]})


def numbered_job(parallelism: int, output: OutputTables) -> JobGraph:
    env = hw.Environment("numbered", parallelism=parallelism, checkpoint_interval=None)
    left = env.source(
        MemorySource({"a": rows(0, 30, "a"), "b": rows(100, 20, "b")}, every=40_000),
        uid="left",
        watermarks=hw.monotonic("n"),
    )
    right = env.source(MemorySource({"c": rows(200, 25, "a")}, every=50_000), uid="right")
    schema = {"key": str, "n": int, "side": str, "nth": int}
    (
        left.key_by("key")
        .connect(right.key_by("key"))
        .process(Numbered(), schema=schema, uid="numbered")
        .select("key", "n", "side", "nth")
        .sink(output.sink("numbered"), uid="out")
    )
    return env.graph()


def expected() -> pl.DataFrame:
    left = pl.concat([rows(0, 30, "a"), rows(100, 20, "b")]).with_columns(side=pl.lit("left"))
    right = rows(200, 25, "a").with_columns(side=pl.lit("right"))
    nth = pl.int_range(1, pl.len() + 1).over("key", "side")
    return (
        pl.concat([left, right])
        .with_columns(nth=nth)
        .select("key", "n", "side", "nth")
        .sort("key", "n", "side", "nth")
    )


def test_the_undisturbed_run_numbers_the_rows_of_each_key() -> None:
    found = simulate(numbered_job, 0, CALM).output.table("numbered")
    assert found.select("key", "n", "side", "nth").equals(expected())


@pytest.mark.parametrize("seed", range(25))
def test_any_history_numbers_them_alike(seed: int) -> None:
    found = simulate(numbered_job, seed).output.table("numbered")
    assert found.select("key", "n", "side", "nth").equals(expected()), f"seed {seed}"
