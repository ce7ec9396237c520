"""How long rows stand still after a kill -9, with default settings, on a small job.

    python -m benchmarks.recovery [--times 10]

    kill ─▶ noticed ─▶ all workers gone ─▶ delay ─▶ workers, state ─▶ first batch behind the shuffle

Units    seconds, from the kill to the first batch that a worker of the next attempt processes
         behind a shuffle. A job manager that was killed is started again at once, as a
         supervisor does.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import LocalCluster, wait_until

JOB_FILE = Path(__file__).with_name("recovery_job.py")
PARALLELISM = 2
QUIET_S = 4.0
"""Before a kill: spares are there again, and checkpoints go on."""


class Pulse:
    """The lines that batches have added: who processed, and when."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def beats(self) -> list[tuple[int, float]]:
        """Process id and moment of each batch so far, whole lines only."""
        lines = self._path.read_text().splitlines(keepends=True) if self._path.exists() else []
        pairs = (line.split() for line in lines if line.endswith("\n"))
        return [(int(pid), float(at)) for pid, at in pairs]

    def first_of_others(self, pids: set[int], after: float) -> float | None:
        """When the first batch of a process that is none of these was processed."""
        return next((at for pid, at in self.beats() if at > after and pid not in pids), None)


def stillness(cluster: LocalCluster, pulse: Pulse, kill: Callable[[LocalCluster], object]) -> float:
    """How long after a kill rows flow again."""
    pids = {pid for pid, _ in pulse.beats()}
    killed_at = time.monotonic()
    kill(cluster)
    found = wait_until(lambda: pulse.first_of_others(pids, killed_at), "rows flow again", 60)
    return found - killed_at


def kill_job_manager(cluster: LocalCluster) -> None:
    cluster.kill_job_manager()
    cluster.restart_job_manager()


VICTIMS: dict[str, tuple[Callable[[LocalCluster], object], float]] = {
    "a worker": (LocalCluster.kill_worker, 2.0),
    "the job manager": (kill_job_manager, 5.0),
}


def measured(folder: Path, times: int) -> dict[str, list[float]]:
    """Kill each victim so many times, of a new job each time: delays grow with failures of one."""
    found: dict[str, list[float]] = {victim: [] for victim in VICTIMS}
    with LocalCluster(folder / "engine") as cluster, EngineClient(cluster.url) as client:
        artifact = client.upload(JOB_FILE.name, JOB_FILE.read_bytes())
        for turn in range(times):
            pulse = folder / f"pulse-{turn}"
            arguments = (str(folder / f"output-{turn}"), str(pulse))
            job = client.run(RunRequest(Program(artifact, arguments, PARALLELISM)))
            for victim, seconds in _hurt(cluster, Pulse(pulse)).items():
                found[victim].append(seconds)
            _end(client, job)
    return found


def _end(client: EngineClient, job: str) -> None:
    client.cancel(job)
    wait_until(lambda: client.job_status(job) is JobStatus.CANCELED, "the job is over")


def _hurt(cluster: LocalCluster, pulse: Pulse) -> dict[str, float]:
    wait_until(pulse.beats, "rows flow", 60)
    found: dict[str, float] = {}
    for victim, (kill, _) in VICTIMS.items():
        threading.Event().wait(QUIET_S)
        found[victim] = stillness(cluster, pulse, kill)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="recovery", description="time from a kill to rows")
    parser.add_argument("--times", type=int, default=10, help="kills of each victim")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory(prefix="recovery-") as folder:
        found = measured(Path(folder), times)
    for victim, (_, goal) in VICTIMS.items():
        seconds = found[victim]
        print(
            f"kill -9 of {victim}: rows flow again after {statistics.median(seconds):.2f} s "
            f"(median of {times}, worst {max(seconds):.2f} s; goal {goal:g} s)"
        )


if __name__ == "__main__":
    main()
