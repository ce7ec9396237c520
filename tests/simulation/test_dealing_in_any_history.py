"""Rows that are split, exploded and dealt out: each goes where it should, in any history."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine.graph.jobgraph import JobGraph
from engine.testing.memory import OutputTables
from engine.testing.readings import INPUT, source
from engine.testing.scenarios.dealing import SCENARIO, SPIKE
from engine.testing.simulation import simulate


def test_every_row_goes_to_one_place_and_each_element_is_counted_once() -> None:
    spikes, sums, late = SCENARIO.undisturbed
    rows = pl.concat(INPUT.values())
    calm = rows.filter(pl.col("value").abs() <= SPIKE).height
    assert spikes.height == rows.height - calm > 0
    assert late.height > 3
    assert sums["n"].sum() + late.height == 2 * calm


@pytest.mark.parametrize("seed", range(3))
def test_any_history_deals_out_to_the_same_output(seed: int) -> None:
    assert SCENARIO.differs(SCENARIO.history(seed)) is None


def told(parallelism: int, output: OutputTables) -> JobGraph:
    env = hw.Environment("told", parallelism=parallelism, checkpoint_interval=None)
    rows = env.source(source(), uid="readings").broadcast()
    rows = rows.select("key", "value", uid="told", parallelism=3)
    rows.sink(output.sink("told"), uid="out", parallelism=3)
    return env.graph()


@pytest.mark.parametrize("seed", range(3))
def test_a_broadcast_reaches_every_subtask_once_in_any_history(seed: int) -> None:
    rows = pl.concat(INPUT.values()).select("key", "value")
    assert simulate(told, seed).output.table("told").equals(pl.concat([rows] * 3).sort(pl.all()))
