"""Histories of one small job that has it all, from the shell: make sim SEED=42 N=1000.

    two splits, late rows --rebalance--> partial sums --hash--> tumbling windows --> "sums"
                                              +--late rows--> "late"

Guarantee  every history gives the output of the undisturbed one; the first that does not is told
           with its seed, which gives the same history again.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from random import Random

import polars as pl

from engine import aggregates as agg
from engine import windows
from engine.graph.jobgraph import JobGraph
from engine.stream import Environment
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.simulation import CALM, History, simulate
from engine.watermarks import bounded_out_of_orderness

TABLES = ("sums", "late")


def readings(seed: int, rows: int) -> pl.DataFrame:
    """Rows that come up to 3 s out of order, some of them behind a bound of 1 s."""
    random = Random(seed)  # noqa: S311 - test data
    times = [at * 100_000 - random.choice([0, 0, 0, 300_000, 3_000_000]) for at in range(rows)]
    return pl.DataFrame(
        {
            "time": [max(0, time) for time in times],
            "key": [random.choice("abcdefg") for _ in range(rows)],
            "value": [random.uniform(-1, 1) * 10 ** random.randint(-9, 9) for _ in range(rows)],
        },
        schema={"time": pl.Int64, "key": pl.String, "value": pl.Float64},
    )


INPUT = {"left": readings(1, 60), "right": readings(2, 40)}


def sums_job(parallelism: int, output: OutputTables) -> JobGraph:
    """The job; its middle runs at another parallelism, so that chains differ between attempts."""
    env = Environment("sums", parallelism=parallelism, checkpoint_interval=None)
    strategy = bounded_out_of_orderness("1s", column="time")
    rows = env.source(MemorySource(INPUT, every=30_000), uid="readings", watermarks=strategy)
    signed = rows.with_columns(sign=pl.col("value").sign(), uid="sign", parallelism=2)
    sums = (
        signed.key_by("key")
        .window(windows.tumbling("2s"))
        .agg(n=agg.count(), total=agg.sum("value"), uid="sums")
    )
    sums.sink(output.sink("sums"), uid="out")
    sums.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


@functools.cache
def undisturbed() -> list[pl.DataFrame]:
    """What the job gives when nothing happens to it."""
    return outputs(simulate(sums_job, seed=0, chaos=CALM))


def outputs(history: History) -> list[pl.DataFrame]:
    """What a history gave, table by table."""
    return [history.output.table(name) for name in TABLES]


def differs(history: History) -> str | None:
    """One sentence when a history broke the law."""
    for name, found, wanted in zip(TABLES, outputs(history), undisturbed(), strict=True):
        if not found.equals(wanted):
            return (
                f"history {history.seed} gave another table {name!r}: {found.height} rows instead "
                f"of {wanted.height}, or other values; see it again with: make sim N=1 "
                f"SEED={history.seed}"
            )
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run histories until one breaks the law, or all have held it."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the first history")
    parser.add_argument("--histories", type=int, default=100, help="how many, seed by seed")
    arguments = parser.parse_args(argv)
    crashes = stops = snapshots = 0
    for seed in range(arguments.seed, arguments.seed + arguments.histories):
        history = simulate(sums_job, seed)
        failure = differs(history)
        if failure is not None:
            print(failure)
            return 1
        crashes, stops = crashes + history.crashes, stops + history.stops
        snapshots += history.completed
    print(
        f"{arguments.histories} histories with {crashes} crashes, {stops} stops and {snapshots} "
        "snapshots: all gave the same output"
    )
    return 0
