"""Whether a job manager stays as small as it was, however many jobs have ended.

    python -m benchmarks.many_jobs [--jobs 10000] [--remembered 100]

A whole job manager, with its store, storage and REST, runs jobs to their end, each with a last
checkpoint; their workers are played in the same process (`engine.testing.played_fleet`). After the
first hundred, memory, files and the store should not grow any more.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from benchmarks.service_parts import plan
from engine.checkpoint.restoring.inputs import Positions
from engine.clock import now_ms
from engine.cluster.forgetting import Rules
from engine.cluster.home import FOLDERS
from engine.cluster.jobmanager import JobManager, Options, listen
from engine.cluster.programs.artifacts import Built
from engine.cluster.programs.build import GRAPH, PLAN
from engine.rest.model.requests import Program, RunRequest
from engine.testing.played_fleet import PlayedTaskManager

AT_ONCE = 50
MARKS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
BEAT_S = 1.0


class Churn:
    """A job manager that runs job after job."""

    def __init__(self, home: Path, manager: JobManager) -> None:
        self._home = home
        self._manager = manager
        self._plan = plan(1)

    async def run(self, numbers: Iterator[int]) -> None:
        """Run jobs to their end, many at once."""
        jobs = self._manager.jobs
        ids = [f"{number + 1:032x}"[::-1] for number in numbers]
        for job_id in ids:
            await jobs.submit(RunRequest(Program(""), job_id), self._build)
        while not all(jobs.find(job_id).life.status.terminal for job_id in ids):
            jobs.ended.clear()
            await jobs.ended.wait()
        await self._manager.retention.clean(now_ms())

    async def _build(self, folder: Path, _positions: Positions) -> Built:
        folder.mkdir()
        (folder / GRAPH).write_bytes(b"")
        (folder / PLAN).write_text(self._plan.to_json())
        return Built(folder, self._home / "artifacts", self._plan)


async def measured(home: Path, jobs: int, remembered: int) -> None:
    """Run that many jobs, and print a line at each mark."""
    for folder in (*FOLDERS, "run"):
        (home / folder).mkdir()
    with listen("127.0.0.1", 0) as listener:
        options = Options(
            home, home / "savepoints", "127.0.0.1", 0, home / "run", 0, 0, 1_000, None,
            retention=Rules(max_capacity=remembered),
        )  # fmt: skip
        manager = JobManager(options)
        serving = asyncio.create_task(manager.run(listener))
        await asyncio.sleep(1)
        beating = asyncio.create_task(_beat(PlayedTaskManager(manager.fleet, AT_ONCE)))
        churn, begun = Churn(home, manager), time.monotonic()
        for done in range(0, jobs, AT_ONCE):
            await churn.run(iter(range(done, done + AT_ONCE)))
            if done + AT_ONCE in MARKS:
                _print(home, done + AT_ONCE, time.monotonic() - begun)
        beating.cancel()
        manager.ask_to_end()
        await serving


async def _beat(task_manager: PlayedTaskManager) -> None:
    while True:
        task_manager.beat()
        await asyncio.sleep(BEAT_S)


def _print(home: Path, done: int, seconds: float) -> None:
    memory = psutil.Process().memory_info().rss / 2**20
    files = sum(1 for path in home.rglob("*") if path.is_file())
    store = sum(path.stat().st_size for path in home.glob("engine.db*")) / 2**20
    each = 1000 * seconds / done
    print(f"{done:>8,}{memory:>13.1f}{files:>8,}{store:>12.1f}{each:>12.1f}", flush=True)


def main() -> None:
    """Measure and print."""
    summary = __doc__.split("\n", 1)[0]
    parser = argparse.ArgumentParser(prog="benchmarks.many_jobs", description=summary)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--remembered", type=int, default=100, help="jobstore.max-capacity")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"{'jobs':>8}{'memory MiB':>13}{'files':>8}{'store MiB':>12}{'ms per job':>12}")
    with tempfile.TemporaryDirectory(prefix="hw-many-") as folder:
        asyncio.run(measured(Path(folder), args.jobs, args.remembered))


if __name__ == "__main__":
    main()
