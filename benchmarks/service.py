"""How fast REST answers, and how large the job manager is, with many jobs.

    python -m benchmarks.service [--jobs 50] [--parallelism 1] [--rounds 20]

A job manager with that many running jobs of four vertices, each checkpointing and reporting each
second, is asked every route that a dashboard asks. Its workers are played (see `service_parts.py`),
so what is measured is the job manager alone; 50 jobs of parallelism 1 are 200 subtasks, of
parallelism 50 they are 10,000.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
from starlette.routing import Mount, Route

from benchmarks.service_parts import vertex_id
from engine.rest.app import create_app
from engine.testing.fake_service import FakeService

GOAL_MS, GOAL_MIB = 50, 300
SETTLED_S = 8.0
"""Then every job runs, has checkpoints and has reported."""
VALUES = {
    "jobid": f"{1:032x}",
    "vertexid": vertex_id(1),
    "subtaskindex": "0",
    "taskmanagerid": "{task_manager}",
    "checkpointid": "2",
}


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one route took."""

    path: str
    status: int
    size: int
    times_ms: Sequence[float]

    @property
    def median_ms(self) -> float:
        return sorted(self.times_ms)[len(self.times_ms) // 2]

    @property
    def worst_ms(self) -> float:
        """The 95th of 100."""
        return sorted(self.times_ms)[int(len(self.times_ms) * 0.95)]

    def __str__(self) -> str:
        size = f"{self.size / 1024:.1f}"
        return f"{self.path:70}{self.status:>5}{size:>9}{self.median_ms:>9.1f}{self.worst_ms:>9.1f}"


@contextmanager
def engine(home: Path, jobs: int, parallelism: int) -> Iterator[tuple[str, psutil.Process]]:
    """A job manager with running jobs: its address and its process."""
    module = [sys.executable, "-m", "benchmarks.service_parts"]
    command = [*module, "manager", str(home), str(jobs), str(parallelism)]
    with (home.parent / "manager.log").open("wb") as log:
        manager = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    assert manager.stdout is not None
    try:
        url = manager.stdout.readline().decode().strip()
        with subprocess.Popen(
            [*module, "workers", str(home / "run"), str(jobs * parallelism)]
        ) as workers:
            try:
                yield url, psutil.Process(manager.pid)
            finally:
                workers.kill()
    finally:
        manager.terminate()
        manager.wait()
        manager.stdout.close()


def routes(task_manager: str) -> list[str]:
    """Every path that can be read, of one job, vertex, subtask and checkpoint."""
    values = VALUES | {"taskmanagerid": task_manager}
    found = []
    for route in create_app(FakeService()).routes:
        if isinstance(route, Mount) or not isinstance(route, Route):
            continue
        names = set(route.param_convertors)
        if "GET" in (route.methods or ()) and names <= set(values):
            found.append(route.path.format(**{name: values[name] for name in names}))
    return sorted(set(found))


def measure(http: httpx.Client, path: str, rounds: int) -> Timing:
    """Ask one route again and again."""
    times, answer = [], http.get(path)
    for _ in range(rounds):
        begun = time.perf_counter()
        answer = http.get(path)
        times.append(1000 * (time.perf_counter() - begun))
    return Timing(path, answer.status_code, len(answer.content), times)


def measured(jobs: int, parallelism: int, rounds: int) -> tuple[list[Timing], float, float]:
    """Timings, slowest first; the job manager's memory in MiB, and its share of a core."""
    with (
        tempfile.TemporaryDirectory(prefix="hw-service-") as folder,
        engine(Path(folder) / "home", jobs, parallelism) as (url, manager),
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        _await_running(http, jobs)
        before = sum(manager.cpu_times()[:2])
        time.sleep(SETTLED_S)
        used = sum(manager.cpu_times()[:2]) - before
        managers = http.get("/taskmanagers").json()["taskmanagers"]
        found = [measure(http, path, rounds) for path in routes(managers[0]["id"])]
        memory = manager.memory_info().rss / 2**20
    found.sort(key=lambda timing: timing.worst_ms, reverse=True)
    return found, memory, used / SETTLED_S


def _await_running(http: httpx.Client, jobs: int) -> None:
    deadline = time.monotonic() + 120
    while http.get("/overview").json()["jobs-running"] < jobs or any(
        job["state"] != "RUNNING" for job in http.get("/jobs/overview").json()["jobs"]
    ):
        if time.monotonic() > deadline:
            msg = "the jobs do not all run"
            raise TimeoutError(msg)
        time.sleep(0.2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.service", description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    subtasks = args.jobs * args.parallelism * 4
    print(f"{os.cpu_count()} cores; {args.jobs} jobs, {subtasks:,} subtasks that are played\n")
    found, memory, load = measured(args.jobs, args.parallelism, args.rounds)
    print(f"{'':70}{'':>5}{'KiB':>9}{'p50 ms':>9}{'p95 ms':>9}")
    for timing in found:
        print(timing)
    slow = sum(timing.worst_ms >= GOAL_MS for timing in found)
    print(f"\n{len(found)} routes, {slow} of them over {GOAL_MS} ms")
    print(f"job manager: {memory:.0f} MiB (goal {GOAL_MIB}), {load:.0%} of a core")


if __name__ == "__main__":
    main()
