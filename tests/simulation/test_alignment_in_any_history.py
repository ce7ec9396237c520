"""Watermark alignment of two sources, one of them slow: bounded memory, the same output."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import polars as pl
import pytest

from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.attempt import Attempt
from engine.testing.blueprint import Blueprint
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.scenarios.alignment import (
    ALIGNED,
    DRIFT,
    EVERY,
    ROWS,
    SCENARIO,
    SECOND,
    aligned_job,
)
from engine.testing.simulation import simulate
from engine.testing.weather import Weather
from engine.testing.world import World
from engine.watermarks import WatermarkStrategy, monotonic

FREE = monotonic("t").unaligned()
SPLITS = 3
AHEAD = DRIFT // SECOND + 12 + 1
"""Rows of a split that may wait: the drift, what one poll gives, and the second of the slowest."""


@pytest.mark.parametrize("seed", range(4))
def test_alignment_changes_no_output(seed: int) -> None:
    assert SCENARIO.differs(SCENARIO.history(seed)) is None


@pytest.mark.parametrize("strategy", [FREE, monotonic("t")], ids=["unaligned", "by default"])
def test_the_output_is_that_of_a_job_without_alignment(strategy: WatermarkStrategy) -> None:
    history = simulate(partial(aligned_job, strategy=strategy), 1)
    assert SCENARIO.differs(history) is None


def most(graph: JobGraph, seed: int, waiting: Callable[[Attempt], int]) -> int:
    """The most rows that wait at a time, when nothing but the slow source takes time."""
    random = Random(seed)
    attempt = Attempt(Blueprint(graph, OutputTables()), "attempt1", World(random, Weather(random)))
    found = 0
    while not attempt.input_ended:
        steps = attempt.steps()
        if steps:
            random.choice(steps).do()
        else:
            attempt.tick(1_000)
        found = max(found, waiting(attempt))
    return found


def in_windows(attempt: Attempt) -> int:
    """Each row makes one result: those that have not come are held."""
    operators = [each for task in attempt.tasks.values() for each in task.metrics.operators]
    counts = [operator for operator in operators if operator.uid == "counts"]
    return sum(operator.rows_in - operator.rows_out for operator in counts)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("parallelism", [1, 2])
def test_windows_hold_no_more_than_the_drift_while_one_source_is_slow(
    parallelism: int, seed: int
) -> None:
    def held(strategy: WatermarkStrategy) -> int:
        return most(aligned_job(parallelism, OutputTables(), strategy), seed, in_windows)

    assert held(FREE) > (SPLITS - 1) * ROWS * 3 // 4
    assert held(ALIGNED) <= (SPLITS - 1) * AHEAD


def joined_job(strategy: WatermarkStrategy) -> JobGraph:
    """Rows of both sources that are of the same second."""
    env = Environment("joined", checkpoint_interval=None)
    rows = pl.DataFrame({"t": [at * SECOND for at in range(ROWS)], "k": [0] * ROWS})
    fast = env.source(MemorySource({"fast": rows}), uid="fast", watermarks=strategy)
    slow = env.source(MemorySource({"slow": rows}, every=EVERY), uid="slow", watermarks=strategy)
    near = fast.key_by("k").interval_join(
        slow.key_by("k"), lower=0, upper=0, suffix="_slow", uid="near"
    )
    near.sink(OutputTables().sink("near"), uid="out")
    return env.graph()


def in_join(attempt: Attempt) -> int:
    """Rows of the fast source that have not met those of the slow one."""
    read = {task.spec.vertex.operators[0].uid: task for task in attempt.tasks.values()}
    fast, slow = (read[uid].metrics.operators[0].rows_out for uid in ("fast", "slow"))
    return fast - slow


def test_a_join_holds_no_more_than_the_drift_while_one_source_is_slow() -> None:
    assert most(joined_job(FREE), 0, in_join) > ROWS * 3 // 4
    assert most(joined_job(ALIGNED), 0, in_join) <= AHEAD
