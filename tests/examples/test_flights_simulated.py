"""The flights job, with its real source and files, in seeded histories of crashes and stops."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.graph.jobgraph import JobGraph
from engine.stream import capture
from engine.testing.memory import OutputTables
from engine.testing.simulation import Chaos, simulate
from examples.truth import EXAMPLES, RECORDING, read_output, truth, v1


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every 1,000th flight: all months, all airports, and short histories."""
    path = tmp_path_factory.mktemp("sample") / "flights.parquet"
    pl.read_parquet(RECORDING).gather_every(1_000).write_parquet(path)
    return path


@pytest.mark.parametrize("seed", range(5))
def test_the_same_files_in_every_history(tmp_path: Path, sample: Path, seed: int) -> None:
    output = tmp_path / "daily"
    places = ["--data", str(sample), "--output", str(output)]

    def build(parallelism: int, _: OutputTables) -> JobGraph:
        args = [*places, "--speed", "0", "--bounded", "--no-points"]
        return capture(EXAMPLES / "flights.py", args, {"parallelism.default": str(parallelism)})

    history = simulate(build, seed, Chaos(crash=0.2, stop=0.1))
    assert_frame_equal(read_output(output), truth(v1, sample), check_exact=True)
    assert list(output.rglob(".*")) == []
    assert history.crashes.total() + history.stops > 0
