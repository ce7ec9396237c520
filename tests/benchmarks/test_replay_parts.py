"""What the replay benchmark calls equal, late and flat."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from benchmarks.replay_job import BEGAN
from benchmarks.replay_parts import WINDOW, Run, steps, wrong

LIVE = pl.DataFrame(
    {
        "window_end": [BEGAN + WINDOW * turn for turn in (1, 2, 3)],
        "sensor": [7, 7, 7],
        "n": [5, 5, 5],
        "sum": [1.0, 0.0, 3.0],
    }
)
REPLAYED = LIVE[1:]


def run(table: pl.DataFrame, *memory: int) -> Run:
    return Run(table, 10.0, 1.0, memory)


def test_a_replay_equals_the_live_rows_from_its_first_window_on() -> None:
    assert wrong(run(LIVE), run(REPLAYED), 15) is None
    assert run(REPLAYED).covered == timedelta(minutes=20)
    assert run(REPLAYED).times_real == 120.0


@pytest.mark.parametrize(
    ("table", "readings", "sentence"),
    [
        (REPLAYED[:1], 15, "its 1 rows are not the 2 live ones"),
        (pl.concat([REPLAYED, REPLAYED[1:]]), 15, "its 3 rows are not the 2 live ones"),
        (REPLAYED.with_columns(pl.col("sum") + 1e-15), 15, "its 2 rows are not the 2 live ones"),
        (REPLAYED.with_columns(pl.col("sum").replace(0.0, -0.0)), 15, "but not their bytes"),
        (REPLAYED, 16, "15 of 16 readings are counted"),
    ],
)
def test_any_difference_is_told(table: pl.DataFrame, readings: int, sentence: str) -> None:
    found = wrong(run(LIVE), run(table), readings)
    assert found is not None
    assert sentence in found


def test_memory_is_flat_when_the_end_takes_no_more_than_the_middle() -> None:
    assert run(LIVE, 0, 9, 10, 10, 11, 10).flat
    assert not run(LIVE, 0, 9, 10, 10, 11, 12).flat


def test_steps_tell_the_most_of_each_sixth_of_a_run() -> None:
    assert steps([1, 3, 2, 2, 5, 4, 1, 1, 9, 0, 2, 2]) == (3, 2, 5, 1, 9, 2)
