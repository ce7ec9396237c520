"""The prices job, with its real sources and files and either backend, in seeded histories."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest

from engine.graph.jobgraph import JobGraph
from engine.stream import capture
from engine.testing.memory import OutputTables
from engine.testing.simulation import CALM, Chaos, simulate
from examples.truth import EXAMPLES


def run(output: Path, seed: int, chaos: Chaos, backend: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    args = ["--rate", "5", "--rows", "40", "--timeout", "3s", "--output", str(output)]
    args += ["--anchor", "1970-01-01T00:00:00+00:00"]

    def build(parallelism: int, _: OutputTables) -> JobGraph:
        settings = {"parallelism.default": str(parallelism), "state.backend": backend}
        return capture(EXAMPLES / "prices.py", args, settings)

    simulate(build, seed, chaos)
    orders, spent = (
        pl.concat([pl.read_parquet(file) for file in (output / name).rglob("[!.]*.parquet")])
        for name in ("orders", "spent")
    )
    return orders.sort("user", "item", "nth"), spent.sort("user")


@pytest.mark.parametrize(("seed", "backend"), [(1, "memory"), (2, "rocksdb")])
def test_any_history_and_backend_gives_the_same_prices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, backend: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    orders, spent = run(tmp_path / "calm", 0, CALM, "memory")
    assert orders["user"].unique().sort().to_list() == ["door", "pressure", "temperature"]
    assert orders.height == 3 * 40
    assert orders["price"].n_unique() > 3
    sums = orders.group_by("user").agg(pl.col("price").sum().alias("spent")).sort("user")
    assert spent.select("user", "spent").equals(sums)
    again = run(tmp_path / "rough", seed, Chaos(), backend)
    assert again[0].equals(orders)
    assert again[1].equals(spent)
