"""Watermark alignment of two sources, one of them slow: bounded memory, the same output."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from engine.checkpoint.stats import CheckpointLog
from engine.elements import Micros
from engine.testing.attempt import Attempt
from engine.testing.memory import MemoryStorage, OutputTables
from engine.testing.scenarios.alignment import (
    ALIGNED,
    DRIFT,
    ROWS,
    SCENARIO,
    SECOND,
    aligned_job,
)
from engine.testing.simulation import simulate
from engine.watermarks import WatermarkStrategy, monotonic

FREE = monotonic("t").unaligned()
SPLITS = 3


@pytest.mark.parametrize("seed", range(4))
def test_alignment_changes_no_output(seed: int) -> None:
    assert SCENARIO.differs(SCENARIO.history(seed)) is None


@pytest.mark.parametrize("strategy", [FREE, monotonic("t")], ids=["unaligned", "by default"])
def test_the_output_is_that_of_a_job_without_alignment(strategy: WatermarkStrategy) -> None:
    history = simulate(partial(aligned_job, strategy=strategy), 1)
    assert SCENARIO.differs(history) is None


def most_waiting(strategy: WatermarkStrategy, seed: int, parallelism: int) -> int:
    """The most rows that windows hold at a time, when nothing but the slow source takes time."""
    random = Random(seed)
    attempt = Attempt(
        aligned_job(parallelism, OutputTables(), strategy),
        "attempt1",
        {},
        MemoryStorage(lambda: False),
        CheckpointLog(),
        first_id=1,
        now=Micros(0),
        on_completed=lambda _: None,
    )
    most = 0
    while not attempt.input_ended:
        steps = attempt.steps(random)
        if steps:
            random.choice(steps).do()
        else:
            attempt.tick(1_000)
        operators = [each for task in attempt.tasks.values() for each in task.metrics.operators]
        counts = [operator for operator in operators if operator.uid == "counts"]
        most = max(most, sum(operator.rows_in - operator.rows_out for operator in counts))
    return most


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("parallelism", [1, 2])
def test_windows_hold_no_more_than_the_drift_while_one_source_is_slow(
    parallelism: int, seed: int
) -> None:
    assert most_waiting(FREE, seed, parallelism) > (SPLITS - 1) * ROWS * 3 // 4
    # Beside the drift: what one poll gives, and the second in which the slow one is.
    held = DRIFT // SECOND + 12 + 1
    assert most_waiting(ALIGNED, seed, parallelism) <= (SPLITS - 1) * held
