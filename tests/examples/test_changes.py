"""The changes job, with its real source and files, in seeded histories of crashes and stops."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from engine.connectors.generator import SensorGenerator
from engine.graph.jobgraph import JobGraph
from engine.stream import capture
from engine.testing.memory import OutputTables
from engine.testing.simulation import simulate
from examples.truth import EXAMPLES

RATE, ROWS = 8, 48
START = datetime(1970, 1, 1, tzinfo=UTC)


def readings() -> list[tuple[str, datetime, float]]:
    """Everything that the sensors read, in order of time."""
    source = SensorGenerator(RATE, rows=ROWS, anchor=START)
    frames = [source.generate(split, np.arange(ROWS), 0) for split in source.splits()]
    return pl.concat(frames).sort("sensor", "time").rows()


def changes() -> list[tuple[str, datetime, float, float | None]]:
    """What is to be told, one reading after the other."""
    told: dict[str, float] = {}
    found = []
    for sensor, time, value in readings():
        if value >= -0.9 and (sensor not in told or abs(value - told[sensor]) >= 0.5):
            found.append((sensor, time, value, told.get(sensor)))
            told[sensor] = value
    return found


@pytest.mark.parametrize("seed", range(2))
def test_each_change_is_told_once_with_what_was_before(tmp_path: Path, seed: int) -> None:
    args = ["--rate", str(RATE), "--rows", str(ROWS), "--output", str(tmp_path)]
    args += ["--anchor", START.isoformat()]

    def build(parallelism: int, _: OutputTables) -> JobGraph:
        settings = {"parallelism.default": str(parallelism)}
        return capture(EXAMPLES / "changes.py", args, settings)

    simulate(build, seed)
    told, aside = (
        pl.concat([pl.read_parquet(file) for file in (tmp_path / name).rglob("[!.]*.parquet")])
        for name in ("changes", "implausible")
    )
    told = told.select("sensor", "time", "value", "before")
    assert sorted(told.rows()) == sorted(changes())
    implausible = [row for row in readings() if row[2] < -0.9]
    assert sorted(aside.select("sensor", "time", "value").rows()) == sorted(implausible)
