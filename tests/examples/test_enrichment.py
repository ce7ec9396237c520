"""The enrichment job, with its real source and files, in seeded histories of crashes and stops."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from engine.graph.jobgraph import JobGraph
from engine.stream import capture
from engine.testing.memory import OutputTables
from engine.testing.simulation import simulate
from examples.truth import EXAMPLES


@pytest.mark.parametrize("seed", range(2))
def test_each_reading_is_written_once_with_its_place(tmp_path: Path, seed: int) -> None:
    args = ["--rate", "10", "--rows", "30", "--latency-ms", "0", "--output", str(tmp_path)]
    args += ["--anchor", "1970-01-01T00:00:00+00:00"]

    def build(parallelism: int, _: OutputTables) -> JobGraph:
        settings = {"parallelism.default": str(parallelism)}
        return capture(EXAMPLES / "enrichment.py", args, settings)

    simulate(build, seed)
    found = pl.concat([pl.read_parquet(file) for file in tmp_path.rglob("[!.]*.parquet")])
    places = found.group_by("sensor", "place", "unit").agg(pl.len(), times=pl.n_unique("time"))
    assert sorted(places.rows()) == [
        ("door", "yard", "open", 30, 30),
        ("pressure", "cellar", "Pa", 30, 30),
        ("temperature", "roof", "°C", 30, 30),
    ]
