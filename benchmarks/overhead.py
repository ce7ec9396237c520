"""What checkpoints cost a job that goes on: the first workload with and without them, in turns.

    without, with, with, without, without, with …     a machine that warms up favours neither

Counts   the part of the throughput that is lost to a checkpoint each second, by the median of the
         turns: of seconds, and of processor time, which other work on the machine hardly changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.cluster import Run, run
from benchmarks.workloads import BATCH, counts_every_row

NAME = "checkpoint overhead"
ROWS = 120_000_000
TURNS = 5
GOAL = 0.03
JOB = Path(__file__).with_name("keyed_sums.py")


@dataclass(frozen=True, slots=True)
class Overhead:
    """What is lost, as a part of the throughput without checkpoints."""

    seconds: float
    cpu: float
    checkpoints: int
    """In a run of the median length."""

    def __str__(self) -> str:
        return (
            f"{NAME}: {self.seconds:.1%} of the throughput at one a second (goal {GOAL:.0%}), "
            f"{self.cpu:.1%} by processor time, {self.checkpoints} checkpoints a run"
        )


def measured(scale: float = 1.0) -> Overhead:
    """Run both in turns."""
    rows = int(ROWS * scale) // 8 * 8
    without: list[Run] = []
    with_them: list[Run] = []
    for turn in range(2 * TURNS):
        # 0, 1, 1, 0, 0, 1 …
        if (turn + 1) // 2 % 2:
            with_them.append(_run(rows))
        else:
            without.append(_run(rows, "--no-checkpoints"))
    return Overhead(
        seconds=_lost([each.seconds for each in without], [each.seconds for each in with_them]),
        cpu=_lost([each.cpu_s for each in without], [each.cpu_s for each in with_them]),
        checkpoints=round(median(each.checkpoints for each in with_them)),
    )


def _run(rows: int, *arguments: str) -> Run:
    return run(
        JOB,
        ("--rows", str(rows), *arguments),
        parallelism=1,
        max_rows=BATCH,
        check=lambda output: counts_every_row(output, rows),
    )


def _lost(without: list[float], with_them: list[float]) -> float:
    return 1 - median(without) / median(with_them)
