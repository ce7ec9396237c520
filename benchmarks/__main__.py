"""Rows per second and peak memory of the keyed windowed count and sum, on real processes.

    python -m benchmarks [--rows N] [--json FILE]

For parallelism 1 and 2 a cluster runs the job of `keyed_sums.py` from upload to FINISHED with a
checkpoint each second, and its output is checked; rows/s are counted from RUNNING to FINISHED, so
they include the last checkpoint and commit. The baseline is the same work as one batch in plain
Polars on one thread, in the same run: compare ratios between machines, not rows/s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
import psutil

from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import LocalCluster

JOB = Path(__file__).with_name("keyed_sums.py")
ROWS = 10_000_000
SAMPLE_S = 0.05
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table."""

    name: str
    rows: int
    seconds: float
    cpu_s: float
    """Processor time of the workers, start included: hardly changed by what else runs."""
    peak_mib: float
    checkpoints: int | None
    ratio: float
    """Rows/s as a part of the baseline's."""

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


class Usage:
    """Samples what all workers of a cluster together use."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.peak_bytes = 0
        self._cpu_s: dict[int, float] = {}
        self._cluster = cluster
        self._stop = threading.Event()

    @property
    def cpu_s(self) -> float:
        """Processor time of all workers that were seen."""
        return sum(self._cpu_s.values())

    @contextmanager
    def sampled(self) -> Iterator[None]:
        thread = threading.Thread(target=self._sample)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            used = sum(map(self._look, self._cluster.workers()))
            self.peak_bytes = max(self.peak_bytes, used)

    def _look(self, worker: psutil.Process) -> int:
        try:
            times = worker.cpu_times()
            self._cpu_s[worker.pid] = times.user + times.system
            return int(worker.memory_info().rss)
        except psutil.Error:  # it ended between the listing and now
            return 0


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
    )


def engine(rows: int, parallelism: int, base: Result) -> Result:
    """Run the job on a cluster of its own."""
    with tempfile.TemporaryDirectory(prefix="hw-bench-") as folder:
        output = Path(folder, "output")
        with (
            LocalCluster(Path(folder, "home"), task_managers=1, slots=parallelism) as cluster,
            EngineClient(cluster.url, timeout=TIMEOUT_S) as client,
        ):
            arguments = ("--rows", str(rows), "--output", str(output))
            artifact = client.upload(JOB.name, JOB.read_bytes())
            usage = Usage(cluster)
            with usage.sampled():
                job_id = client.run(RunRequest(Program(artifact, arguments, parallelism)))
                seconds = _finished(client, job_id)
            completed = client.checkpoints(job_id).counts.completed
        _check(output, rows)
    return Result(
        f"headwater, parallelism {parallelism}",
        rows=rows,
        seconds=seconds,
        cpu_s=usage.cpu_s,
        peak_mib=usage.peak_bytes / 2**20,
        checkpoints=completed,
        ratio=rows / seconds / base.rows_per_second,
    )


def _finished(client: EngineClient, job_id: str) -> float:
    while not client.job_status(job_id).terminal:
        time.sleep(SAMPLE_S)
    job = client.job(job_id)
    if job.state is not JobStatus.FINISHED:
        failures = client.job_failures(job_id)
        sys.exit(f"the job ended as {job.state}: {failures[0] if failures else 'no failure known'}")
    return (job.timestamps[JobStatus.FINISHED] - job.timestamps[JobStatus.RUNNING]) / 1_000


def _check(output: Path, rows: int) -> None:
    counted = sum(pl.read_parquet(file)["n"].sum() for file in output.glob("[!.]*.parquet"))
    if counted != rows:
        sys.exit(f"the output is wrong: it counts {counted:,} of {rows:,} rows")


def table(results: list[Result]) -> str:
    """The results as text."""
    heads = (
        f"{'rows/s':>12}{'ratio':>7}{'seconds':>9}{'cpu s':>8}{'peak MiB':>10}{'checkpoints':>13}"
    )
    lines = [" " * 32 + heads]
    for result in results:
        completed = "-" if result.checkpoints is None else str(result.checkpoints)
        lines.append(
            f"{result.name:32}{result.rows_per_second:>12,.0f}{result.ratio:>7.2f}"
            f"{result.seconds:>9.2f}{result.cpu_s:>8.2f}{result.peak_mib:>10.0f}{completed:>13}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=ROWS, help=f"events (default {ROWS:,})")
    parser.add_argument("--json", type=Path, help="write the results to this file too")
    args = parser.parse_args()
    base = baseline(args.rows)
    results = [base, *(engine(args.rows, parallelism, base) for parallelism in (1, 2))]
    print(f"count and sum of 1,000 keys per second of event time, {args.rows:,} rows,")
    print(f"{psutil.cpu_count()} cores; checkpoint each second, real processes\n")
    print(table(results))
    rows = [asdict(result) | {"rows_per_second": result.rows_per_second} for result in results]
    text = json.dumps(rows, indent=1)
    print(f"\n{text}")
    if args.json is not None:
        args.json.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
