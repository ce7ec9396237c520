"""Months of sensor readings replayed from a savepoint: how fast, how big, and whether it is equal.

    python -m benchmarks.replay [--days 90] [--kills 5]

    live     ──day 0──●──────────────────────────────▶ end       <output>
    replay            └──────────────────────────────▶ end       <output>@r-1
    disturbed         └────✕────✕────✕────✕────✕─────▶ end       <output>@r-2, workers killed

Six splits, of which one has most readings and one is silent (`replay_job`), as fast as they can be
read; the live run too, but for a pause in which the savepoint is taken.

Units    times real time: event time from the first replayed window to the end, by seconds from
         the request that starts the replay to FINISHED. Memory: resident, all workers together.
Equal    every window that the live run wrote behind the savepoint, row by row, and as bytes of the
         sorted table. All readings are counted: none was late.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.replay_job import DAY_S, lengths
from benchmarks.replay_parts import Output, Run, digest, memory, steps, wrong
from benchmarks.workloads import BATCH
from engine.clock import monotonic
from engine.rest.client import EngineClient
from engine.rest.model.jobs import JobStatus, TaskStatus
from engine.rest.model.requests import Program, RunRequest, SavepointRequest, StopRequest
from engine.testing.cluster import LocalCluster, wait_until

JOB_FILE = Path(__file__).with_name("replay_job.py")
LEAD_DAYS = 1
"""Before the span that is replayed: somewhere in it the savepoint is taken."""
LEAD_ROWS_PER_SECOND = 200_000
GOAL = 250_000
SECONDS_PER_KILL = 2
TIMEOUT_S = 600.0
LOOK_S = 0.2
MIB = 1 << 20


class Months:
    """Runs of the job on one cluster."""

    def __init__(
        self, cluster: LocalCluster, client: EngineClient, folder: Path, days: int, slots: int
    ) -> None:
        """`days`: that are replayed."""
        self.days = days + LEAD_DAYS
        self._cluster = cluster
        self._client = client
        self._output = folder / "output"
        self._slots = slots
        self._artifact = client.upload(JOB_FILE.name, JOB_FILE.read_bytes())
        self._since = 0.0
        """Progress at the savepoint."""

    @property
    def readings(self) -> int:
        """How many there are, in all splits."""
        return sum(lengths(self.days).values())

    def live(self) -> tuple[Run, str]:
        """From the beginning to the end; also the savepoint that was taken on the way."""
        client, output = self._client, Output(self._output)
        began = monotonic()
        job = self._start({"headwater.read-limit": str(LEAD_ROWS_PER_SECOND)})
        start_s = monotonic() - began
        wait_until(lambda: output.progress(self.days) > 0, "windows are written", TIMEOUT_S)
        client.limit_reading(job, 0)
        trigger = client.trigger_savepoint(job, SavepointRequest())
        wait_until(lambda: client.savepoint_status(job, trigger).done, "the savepoint is taken")
        status = client.savepoint_status(job, trigger)
        if status.location is None:
            sys.exit(f"the savepoint failed: {status.failure}")
        self._since = output.progress(self.days)
        client.limit_reading(job, None)
        return self._run(job, output, began, start_s, kills=0), status.location

    def replay(self, savepoint: str, name: str, kills: int = 0) -> Run:
        """From the savepoint to the end, beside the live output; kill workers at even distances."""
        settings = {"headwater.sinks.shadow": name}
        if kills:  # so that even a few days last until the last kill
            at_most = self.readings // (SECONDS_PER_KILL * (kills + 1))
            settings["headwater.read-limit"] = str(at_most)
        began = monotonic()
        job = self._start(settings, savepoint)
        output = Output(self._output.with_name(f"{self._output.name}@{name}"))
        return self._run(job, output, began, monotonic() - began, kills)

    def _start(self, settings: Mapping[str, str], savepoint: str | None = None) -> str:
        arguments = ("--days", str(self.days), "--output", str(self._output))
        program = Program(self._artifact, arguments, self._slots, settings)
        job = self._client.run(RunRequest(program, savepoint_path=savepoint))
        wait_until(lambda: self._runs(job), "every subtask runs", TIMEOUT_S)
        return job

    def _runs(self, job: str) -> bool:
        """Whether rows can flow; where all is read, subtasks may have finished already."""
        states = {vertex.status for vertex in self._client.job(job).vertices}
        return bool(states) and states <= {TaskStatus.RUNNING, TaskStatus.FINISHED}

    def _run(self, job: str, output: Output, began: float, start_s: float, kills: int) -> Run:
        """Kill and weigh workers until all windows are written; then stop, and take the output."""
        pause, weighed, killed = threading.Event(), [0], 0
        while (done := output.progress(self.days)) < 1:
            if killed < kills and done - self._since >= (1 - self._since) * killed / kills:
                self._cluster.kill_worker(killed % self._slots)
                killed += 1
            weighed.append(memory(self._cluster))
            pause.wait(LOOK_S)
            self._check(job, monotonic() - began)
        self._client.stop(job, StopRequest(drain=True))
        wait_until(lambda: self._client.job_status(job).terminal, "the job has ended", TIMEOUT_S)
        self._check(job, 0.0)
        seconds = monotonic() - began
        return Run(output.table(), seconds, start_s, steps(weighed), killed)

    def _check(self, job: str, seconds: float) -> None:
        """Leave when the job has failed, or does not come to an end."""
        if self._client.job_status(job) is JobStatus.FAILED or seconds > TIMEOUT_S:
            failures = self._client.job_failures(job)
            sys.exit(f"the job did not finish: {failures[0] if failures else 'it takes too long'}")


def told(name: str, run: Run) -> str:
    """A run in a line."""
    sizes = ", ".join(f"{size / MIB:.0f}" for size in run.memory)
    return (
        f"{name:<22} {run.covered.total_seconds() / DAY_S:6.2f} days in {run.seconds:5.1f} s "
        f"(start {run.start_s:.1f} s): {run.times_real:9,.0f} times real time; "
        f"{run.table['n'].sum():,} readings in {run.table.height:,} rows; workers: {sizes} MiB"
    )


def compare(months: Months, kills: int) -> int:
    """Run all three, and say whether they are equal and fast: the exit code."""
    print(load(), flush=True)
    live, savepoint = months.live()
    print(told("live, from the start", live), flush=True)
    replay = months.replay(savepoint, "r-1")
    print(told("replay", replay), flush=True)
    disturbed = months.replay(savepoint, "r-2", kills)
    print(told(f"replay, {disturbed.kills} kill -9", disturbed))
    print(load())
    return verdict(live, {"replay": replay, "disturbed replay": disturbed}, months.readings)


def load() -> str:
    """What else the machine had to do."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def verdict(live: Run, replays: Mapping[str, Run], readings: int) -> int:
    """Say of each replay whether it is equal, and of the first one whether it is fast and flat."""
    failed = False
    for name, run in replays.items():
        difference = wrong(live, run, readings)
        failed = failed or difference is not None
        print(f"{name}: {difference or f'equal, none late; SHA-256 {digest(run.table)[:16]}'}")
    first = next(iter(replays.values()))
    print(f"memory {'is flat' if first.flat else 'grows'}; goal {GOAL:,} times real time")
    return int(failed or not first.flat or first.times_real < GOAL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job on a cluster of its own."""
    parser = argparse.ArgumentParser(prog="replay", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--days", type=int, default=90, help="event time to replay")
    parser.add_argument("--kills", type=int, default=5, help="workers to kill in the second replay")
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--max-rows", type=int, default=BATCH, help="rows of one poll at most")
    args = parser.parse_args(argv)
    options = ("--max-rows", str(args.max_rows))
    slots = args.parallelism
    with (
        tempfile.TemporaryDirectory(prefix="hw-replay-") as folder,
        LocalCluster(
            Path(folder, "home"), task_managers=1, slots=slots, options=options
        ) as cluster,
        EngineClient(cluster.url) as client,
    ):
        return compare(Months(cluster, client, Path(folder), args.days, slots), args.kills)


if __name__ == "__main__":
    sys.exit(main())
