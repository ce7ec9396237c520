"""The law: any kill, any restore, any parallelism, any speed: the same output."""

from __future__ import annotations

import functools
import os
from random import Random

import polars as pl
import pytest

import engine as hw
from engine import agg, windows
from engine.graph.jobgraph import JobGraph
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.simulation import CALM, History, simulate

SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(100)
SECOND = 1_000_000
KEYS = "abcdefg"


def readings(seed: int, rows: int) -> pl.DataFrame:
    """Rows that come up to 3 s out of order, some of them behind a bound of 1 s."""
    random = Random(seed)
    times = [at * 100_000 - random.choice([0, 0, 0, 300_000, 3_000_000]) for at in range(rows)]
    return pl.DataFrame(
        {
            "time": [max(0, time) for time in times],
            "key": [random.choice(KEYS) for _ in range(rows)],
            "value": [random.uniform(-1, 1) * 10 ** random.randint(-9, 9) for _ in range(rows)],
        },
        schema={"time": pl.Int64, "key": pl.String, "value": pl.Float64},
    )


def sums_job(parallelism: int, output: OutputTables) -> JobGraph:
    env = hw.Environment("sums", parallelism=parallelism, checkpoint_interval=None)
    source = MemorySource({"left": readings(1, 60), "right": readings(2, 40)}, every=30_000)
    stream = env.source(
        source, uid="readings", watermarks=hw.bounded_out_of_orderness("1s", column="time")
    )
    sums = (
        stream.key_by("key")
        .window(windows.tumbling("2s"))
        .agg(n=agg.count(), total=agg.sum("value"), uid="sums")
    )
    sums.sink(output.sink("sums"), uid="out")
    sums.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


@functools.cache
def undisturbed() -> tuple[pl.DataFrame, pl.DataFrame]:
    history = simulate(sums_job, seed=0, chaos=CALM)
    return history.output.table("sums"), history.output.table("late")


def outputs(history: History) -> tuple[pl.DataFrame, pl.DataFrame]:
    return history.output.table("sums"), history.output.table("late")


def test_the_undisturbed_run_counts_every_row_once() -> None:
    sums, late = undisturbed()
    assert late.height > 3
    assert sums["n"].sum() + late.height == 100


@pytest.mark.parametrize("seed", SEEDS)
def test_any_history_gives_the_same_output(seed: int) -> None:
    history = simulate(sums_job, seed)
    for found, wanted in zip(outputs(history), undisturbed(), strict=True):
        assert found.equals(wanted), f"seed {seed} gave another output: run make sim SEED={seed}"
    assert history.output.staged == {}


def test_histories_are_rough_enough_to_mean_something() -> None:
    histories = [simulate(sums_job, seed) for seed in range(20)]
    assert sum(history.crashes for history in histories) > 10
    assert sum(history.stops for history in histories) > 3
    assert sum(history.checkpoints.counts.failed for history in histories) > 10
    assert {2, 3} <= {p for history in histories for p in history.parallelisms}


def test_a_seed_gives_the_same_history_again() -> None:
    first, second = simulate(sums_job, 11), simulate(sums_job, 11)
    assert first.parallelisms == second.parallelisms
    assert first.checkpoints.counts == second.checkpoints.counts
