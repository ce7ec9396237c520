"""Rows per second and peak memory of the workloads, on real processes.

    python -m benchmarks [--only TEXT] [--scale X] [--json FILE]

For each workload a cluster runs its job from upload to FINISHED with a checkpoint each second, and
the output is checked. The baseline is the first one's work as one batch in plain Polars on one
thread, in the same run: compare ratios between machines, not rows/s. Then what checkpoints cost
(`--only overhead`), and snapshots of a state of ten million keys (`--only snapshots`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import psutil

from benchmarks import overhead, snapshots
from benchmarks.cluster import run
from benchmarks.workloads import WORKLOADS, Workload

BASELINE_ROWS = 10_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table."""

    name: str
    rows: int
    seconds: float
    cpu_s: float
    """Processor time of the workers: hardly changed by what else runs."""
    peak_mib: float
    checkpoints: int | None
    ratio: float
    """Rows/s as a part of the baseline's."""
    goal: int
    note: str = ""

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def baseline(rows: int) -> Result:
    """Sum the events as one batch."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.baseline", str(rows)],
        env=os.environ | {"POLARS_MAX_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    measured = json.loads(answer)
    return Result(
        "polars, one batch, one thread",
        rows=rows,
        seconds=measured["make_s"] + measured["sum_s"],
        cpu_s=measured["cpu_s"],
        peak_mib=measured["peak_bytes"] / 2**20,
        checkpoints=None,
        ratio=1.0,
        goal=0,
    )


def measured(workload: Workload, scale: float, base: Result) -> Result:
    """Run a workload on a cluster of its own."""
    rows = int(workload.rows * scale) // 8 * 8
    found = run(
        Path(__file__).with_name(workload.job),
        ("--rows", str(rows), *workload.arguments),
        parallelism=workload.parallelism,
        max_rows=workload.max_rows,
        check=lambda output: workload.check(output, rows),
    )
    ratio = rows / found.seconds / base.rows_per_second
    return Result(
        workload.name,
        rows,
        found.seconds,
        found.cpu_s,
        found.peak_mib,
        found.checkpoints,
        ratio,
        workload.goal,
        found.note,
    )


def heading() -> str:
    """The names of the columns."""
    return (
        f"{'':34}{'rows/s':>12}{'goal':>12}{'ratio':>7}{'seconds':>9}{'cpu s':>8}{'peak MiB':>10}"
        f"{'checkpoints':>13}"
    )


def line(result: Result) -> str:
    """A result as text."""
    completed = "-" if result.checkpoints is None else str(result.checkpoints)
    goal = f"{result.goal:,}" if result.goal else "-"
    return (
        f"{result.name:34}{result.rows_per_second:>12,.0f}{goal:>12}{result.ratio:>7.2f}"
        f"{result.seconds:>9.2f}{result.cpu_s:>8.2f}{result.peak_mib:>10.0f}{completed:>13}"
        f"  {result.note}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="", help="workloads with this in their name")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the rows")
    parser.add_argument("--json", type=Path, help="write the results to this file too")
    args = parser.parse_args()
    print(f"{psutil.cpu_count()} cores; real processes\n")
    found: list[dict[str, object]] = list(workloads(args.only, args.scale))
    if args.only in overhead.NAME:
        lost = overhead.measured(args.scale)
        print(f"{lost}\n", flush=True)
        found.append({"name": overhead.NAME} | asdict(lost))
    if args.only in snapshots.NAME:
        print(snapshots.heading())
        for step in snapshots.measured(args.scale):
            print(step, flush=True)
            found.append(asdict(step))
    if args.json is not None:
        args.json.write_text(f"{json.dumps(found, indent=1)}\n")


def workloads(only: str, scale: float) -> Iterator[dict[str, object]]:
    """Measure the workloads with a text in their name, and print each."""
    chosen = [workload for workload in WORKLOADS if only in workload.name]
    if not chosen:
        return
    print(f"checkpoint each second\n\n{heading()}")
    base = baseline(int(BASELINE_ROWS * scale))
    for result in chain([base], (measured(workload, scale, base) for workload in chosen)):
        print(line(result), flush=True)
        yield asdict(result) | {"rows_per_second": result.rows_per_second}
    print()


if __name__ == "__main__":
    main()
