"""What is measured: job files of this folder with arguments, each with the speed to beat.

A new workload is a job file that takes `--rows` and `--output`, and lines here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from benchmarks.latency import delays

BATCH = 65_536
SMALL_BATCH = 8_192
HALF = 15_000_000
"""Rows/s; half of the goal of one worker. There 99 of 100 results are to come within 60 ms."""
SPARSE = ("--per-second", "100000")
"""As the scripts of peers have it: with many keys there are more than half as many results as
events then."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of the table."""

    name: str
    job: str
    rows: int
    check: Callable[[Path, int], str]
    """(folder of the output, rows) -> a note for the table; exits when the output is wrong."""
    arguments: tuple[str, ...] = ()
    parallelism: int = 1
    max_rows: int = BATCH
    goal: int = 0
    """Rows/s to reach on two cores that do nothing else."""


def counts_every_row(output: Path, rows: int, times: int = 1) -> str:
    """The column `n` of the results counts every row once, or some times."""
    rows *= times
    counted = sum(pl.read_parquet(file)["n"].sum() for file in output.glob("[!.]*.parquet"))
    if counted != rows:
        sys.exit(f"the output is wrong: it counts {counted:,} of {rows:,} rows")
    return ""


def tells_delays(output: Path, rows: int) -> str:
    """How long after the end of their window results came, beside the counts."""
    return counts_every_row(output, rows) + delays(output)


def sums(
    name: str,
    rows: int,
    *arguments: str,
    parallelism: int = 1,
    max_rows: int = BATCH,
    goal: int = 0,
) -> Workload:
    """Count and sum per key and second of event time."""
    return Workload(
        f"tumbling, {name}",
        "keyed_sums.py",
        rows,
        counts_every_row,
        arguments,
        parallelism,
        max_rows,
        goal,
    )


def kind(window: str, name: str, rows: int, *arguments: str, goal: int) -> Workload:
    """Count and sum per key in windows of another kind."""
    times = 60 if window == "sliding" else 1
    check = partial(counts_every_row, times=times)
    arguments = ("--window", window, *arguments)
    return Workload(f"{window}, {name}", "keyed_sums.py", rows, check, arguments, goal=goal)


def latency(rate: int) -> Workload:
    """Delays at a rate that events keep, for ten seconds."""
    name, arguments = f"latency at {rate:,} rows/s", ("--rate", str(rate))
    return Workload(name, "latency.py", 10 * rate, tells_delays, arguments)


def amplifier(name: str, rows: int, *arguments: str, goal: int = 0) -> Workload:
    """Readings times the factor of the latest control message, by a temporal join."""
    return Workload(
        f"amplifier, {name}", "amplifier.py", rows, counts_every_row, arguments, goal=goal
    )


WORKLOADS = (
    sums("1,000 keys", 60_000_000, goal=30_000_000),
    sums("1,000 keys, 2 workers", 120_000_000, parallelism=2, goal=40_000_000),
    sums("1,000 keys, small batches", 90_000_000, max_rows=SMALL_BATCH, goal=15_000_000),
    sums("1,000 keys, sparse", 60_000_000, *SPARSE),
    sums("100,000 keys, sparse", 8_000_000, "--keys", "100000", *SPARSE),
    sums("100,000 keys", 24_000_000, "--keys", "100000", goal=8_000_000),
    kind("sliding", "60 s by 1 s, 1,000 keys", 20_000_000, goal=10_000_000),
    kind("session", "1,000 keys", 20_000_000, goal=5_000_000),
    kind("session", "100,000 keys", 8_000_000, "--keys", "100000", goal=5_000_000),
    amplifier("columnar, 3 keys", 30_000_000, "--keys", "3", goal=15_000_000),
    amplifier("columnar, 1,000 keys", 30_000_000, goal=15_000_000),
    amplifier("columnar, out of order", 20_000_000, "--lag", "450000"),
    amplifier("row by row, 1,000 keys", 3_000_000, "--row-by-row", goal=500_000),
    Workload("JSON lines", "json_lines.py", 12_000_000, counts_every_row, goal=2_000_000),
    latency(100_000),
    latency(4_000_000),
    latency(HALF),
)
