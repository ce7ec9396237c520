"""The silence job, with its real source and files, in seeded histories of crashes and stops."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from engine.graph.jobgraph import JobGraph
from engine.stream import capture
from engine.testing.memory import OutputTables
from engine.testing.simulation import simulate
from examples.truth import EXAMPLES

START = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(2))
def test_each_pause_of_each_sensor_is_told_once(tmp_path: Path, seed: int) -> None:
    args = [
        "--rate",
        "5",
        "--rows",
        "40",
        "--anchor",
        "1970-01-01T00:00:00+00:00",
        "--output",
        str(tmp_path),
    ]

    def build(parallelism: int, _: OutputTables) -> JobGraph:
        settings = {"parallelism.default": str(parallelism)}
        return capture(EXAMPLES / "silence.py", args, settings)

    simulate(build, seed)
    found = pl.concat([pl.read_parquet(file) for file in (tmp_path / "silence").rglob("[!.]*.*")])
    last = START + timedelta(seconds=1.8)
    sensors = found["sensor"].unique().to_list()
    assert len(sensors) == 3
    wanted = [(sensor, last + timedelta(seconds=4 * n), 5) for sensor in sensors for n in (0, 1)]
    assert sorted(found.select("sensor", "silent_since", "said").rows()) == sorted(wanted)
