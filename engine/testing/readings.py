"""Made-up readings for scenarios: out of order, some of them late, with values of all sizes."""

from __future__ import annotations

from random import Random

import polars as pl

from engine.testing.memory import MemorySource
from engine.watermarks import bounded_out_of_orderness

BOUND = "1s"
"""How far the watermark strategy of `TIMES` expects rows to be out of order."""

TIMES = bounded_out_of_orderness(BOUND, column="time")

MOST_BEHIND_US = 3_000_000
"""How far rows really are: beyond the bound, so that some are late."""


def readings(seed: int, rows: int) -> pl.DataFrame:
    """Rows that come up to 3 s out of order, some of them behind a bound of 1 s.

    Shapes   time: Int64 µs, key: one of seven letters, value: Float64 of either sign, 1e-9 to 1e9.
    """
    random = Random(seed)  # noqa: S311 - test data
    behind = [0, 0, 300_000, MOST_BEHIND_US]
    times = [at * 150_000 - random.choice(behind) for at in range(rows)]
    return pl.DataFrame(
        {
            "time": [max(0, time) for time in times],
            "key": [random.choice("abcdefg") for _ in range(rows)],
            "value": [random.uniform(-1, 1) * 10 ** random.randint(-9, 9) for _ in range(rows)],
        },
        schema={"time": pl.Int64, "key": pl.String, "value": pl.Float64},
    )


INPUT = {"left": readings(19, 36), "right": readings(20, 24)}


def source() -> MemorySource:
    """Two splits; a row of each becomes readable every 30 ms."""
    return MemorySource(INPUT, every=30_000)
