"""Whether memory stays flat while a sink takes fewer rows than its source could give.

    python -m benchmarks.slow_sink [--minutes 10]

    source, as fast as it may ──4 channels of 16 elements──▶ sink, a batch in 50 ms

Shapes   every ten seconds: rows read, bytes in queues (over all subtasks), how the source spends
         its time, resident memory of all workers. The verdict compares the largest memory of the
         last third with that of the second: what grows for ever has grown by then.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.clock import monotonic
from engine.rest.client import EngineClient
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import LocalCluster, wait_until

JOB_FILE = Path(__file__).with_name("slow_sink_job.py")
PARALLELISM = 2
LOOK_S = 10.0
MIB = 1 << 20

INPUT = "Shuffle.Netty.Input.Buffers.inputQueueSize"
OUTPUT = "Shuffle.Netty.Output.Buffers.outputQueueSize"

GROWN = 1.05
"""More than this is growth; less is what allocators do."""


@dataclass(frozen=True, slots=True)
class Look:
    """The job at one moment."""

    rows: int
    queued_bytes: int
    backpressured: float
    """Share of the source's time."""
    memory_bytes: int


def look(engine: EngineClient, job_id: str) -> Look:
    """See how it stands."""
    vertices = [vertex.id for vertex in engine.job(job_id).vertices]
    metrics = [
        engine.subtask_metrics(
            job_id, vertex, [INPUT, OUTPUT, "numRecordsOut", "backPressuredTimeMsPerSecond"]
        )
        for vertex in vertices
    ]
    workers = [worker for manager in engine.task_managers() for worker in manager.workers]
    return Look(
        rows=int(metrics[0]["numRecordsOut"]["sum"]),
        queued_bytes=int(sum(one[name]["sum"] for one in metrics for name in (INPUT, OUTPUT))),
        backpressured=metrics[0]["backPressuredTimeMsPerSecond"]["avg"] / 1_000,
        memory_bytes=sum(worker.memory_bytes or 0 for worker in workers),
    )


def watch(engine: EngineClient, seconds: float) -> list[Look]:
    """Run the job for so long, and look at it now and then."""
    artifact = engine.upload(JOB_FILE.name, JOB_FILE.read_bytes())
    job_id = engine.run(RunRequest(Program(artifact, parallelism=PARALLELISM)))
    wait_until(lambda: engine.job(job_id).all_running, "every subtask runs", 60)
    pause, looks, end = threading.Event(), [], monotonic() + seconds
    while monotonic() < end:
        pause.wait(min(LOOK_S, seconds / 9))
        looks.append(look(engine, job_id))
        seen = looks[-1]
        print(
            f"{seconds - end + monotonic():5.0f} s  {seen.rows:12,} rows  "
            f"{seen.queued_bytes / MIB:6.1f} MiB queued  "
            f"{seen.backpressured:4.0%} backpressured  {seen.memory_bytes / MIB:6.0f} MiB",
            flush=True,
        )
    engine.cancel(job_id)
    return looks


def main(argv: Sequence[str] | None = None) -> int:
    """Watch, and say whether memory is flat: the exit code."""
    parser = argparse.ArgumentParser("slow_sink", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args(argv).minutes
    with (
        tempfile.TemporaryDirectory() as home,
        LocalCluster(Path(home) / "engine", task_managers=1) as cluster,
        EngineClient(cluster.url) as engine,
    ):
        looks = watch(engine, 60 * minutes)
    third = len(looks) // 3
    second, last = looks[third : 2 * third], looks[-third:]
    before = max(one.memory_bytes for one in second)
    after = max(one.memory_bytes for one in last)
    flat = after <= GROWN * before
    print(
        f"memory {'is flat' if flat else 'grows'}: {before / MIB:.0f}, then {after / MIB:.0f} MiB"
    )
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
