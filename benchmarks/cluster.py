"""One job on a cluster of its own: how long it took, and what its workers used.

Counts   seconds from RUNNING to FINISHED, so with the last checkpoint and its commit; processor
         time without that of workers that wait for a job.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import LocalCluster, wait_until

SAMPLE_S = 0.05
TIMEOUT_S = 60.0
IDLE_S = 0.5


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took."""

    seconds: float
    cpu_s: float
    peak_mib: float
    checkpoints: int
    note: str
    """What the check says."""


class Usage:
    """Samples what all workers of a cluster together use."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.peak_bytes = 0
        self.largest_bytes = 0
        """The peak of any one worker."""
        self._cpu_s: dict[int, float] = {}
        self._before: dict[int, float] = {}
        self._cluster = cluster
        self._stop = threading.Event()

    def cpu_s(self, workers: int) -> float:
        """Processor time of so many workers: those that did most, as others only wait for work."""
        used = [time - self._before.get(pid, 0.0) for pid, time in self._cpu_s.items()]
        return sum(sorted(used)[-workers:])

    @contextmanager
    def sampled(self) -> Iterator[None]:
        for worker in self._cluster.worker_processes():
            self._look(worker)
        self._before = dict(self._cpu_s)
        thread = threading.Thread(target=self._sample)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            used = [self._look(worker) for worker in self._cluster.workers()]
            self.peak_bytes = max(self.peak_bytes, sum(used))
            self.largest_bytes = max(self.largest_bytes, *used, 0)

    def _look(self, worker: psutil.Process) -> int:
        try:
            times = worker.cpu_times()
            self._cpu_s[worker.pid] = times.user + times.system
            return int(worker.memory_info().rss)
        except psutil.Error:  # it ended between the listing and now
            return 0


def run(
    job: Path,
    arguments: tuple[str, ...],
    *,
    parallelism: int,
    max_rows: int,
    check: Callable[[Path], str],
) -> Run:
    """Run a job file that takes `--output`, from upload to FINISHED, and check what it wrote."""
    with tempfile.TemporaryDirectory(prefix="hw-bench-") as folder:
        output = Path(folder, "output")
        options = ("--max-rows", str(max_rows))
        cluster = LocalCluster(
            Path(folder, "home"), task_managers=1, slots=parallelism, options=options
        )
        with cluster, EngineClient(cluster.url, timeout=TIMEOUT_S) as client:
            artifact = client.upload(job.name, job.read_bytes())
            wait_until(lambda: _idle(cluster), "a worker waits for orders")
            usage = Usage(cluster)
            with usage.sampled():
                arguments = (*arguments, "--output", str(output))
                job_id = client.run(RunRequest(Program(artifact, arguments, parallelism)))
                seconds = _finished(client, job_id)
            completed = client.checkpoints(job_id).counts.completed
        note = check(output)
    return Run(seconds, usage.cpu_s(parallelism), usage.peak_bytes / 2**20, completed, note)


def _idle(cluster: LocalCluster) -> bool:
    """Whether spare workers have imported everything: that costs time, but not the job's."""
    before = _worked(cluster)
    time.sleep(IDLE_S)
    return 0 < before == _worked(cluster)


def _worked(cluster: LocalCluster) -> float:
    try:
        return sum(sum(worker.cpu_times()[:2]) for worker in cluster.worker_processes())
    except psutil.Error:
        return 0.0


def _finished(client: EngineClient, job_id: str) -> float:
    while not client.job_status(job_id).terminal:
        time.sleep(SAMPLE_S)
    job = client.job(job_id)
    if job.state is not JobStatus.FINISHED:
        failures = client.job_failures(job_id)
        sys.exit(f"the job ended as {job.state}: {failures[0] if failures else 'no failure known'}")
    return (job.timestamps[JobStatus.FINISHED] - job.timestamps[JobStatus.RUNNING]) / 1_000
