"""What the collector's benchmark plays and fills: an engine with moving figures, rows of its jobs.

python -m benchmarks.collector_parts rows 200 8190
python -m benchmarks.collector_parts engine 200 8190
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import replace

import uvicorn

from engine.clock import now_ms
from engine.elements import Micros
from engine.rest.app import create_app
from engine.rest.model.cluster import Artifact
from engine.rest.model.jobs import JobDetails, VertexDetails
from engine.rest.model.operations import JobProgress, SourceProgress
from engine.rest.model.requests import Program, RunRequest
from engine.testing import fake_values as values
from engine.testing.fake_service import FakeService

MOVING = ("numRecordsInPerSecond", "numRecordsOutPerSecond", "busyTimeMsPerSecond")


def engine_id(number: int) -> str:
    """What the engine calls job `number`."""
    return f"{number + 1:032x}"


class MovingService(FakeService):
    """Every second each job has a checkpoint more, another rate, and is a day further."""

    def __init__(self, seed: int = 7) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._time = 0

    async def begin(self, jobs: int) -> None:
        """Start them."""
        self.uploaded["job"] = Artifact("job", "job.py", 0, 1)
        for number in range(jobs):
            await self.run(RunRequest(Program("job"), job_id=engine_id(number)))

    async def move(self) -> None:
        """For ever."""
        while True:
            self._time = now_ms()
            for job_id, job in self.known.items():
                self._checkpoint(job)
                self.known[job_id] = self._moved(job)
            await asyncio.sleep(1.0)

    async def progress(self, job_id: str) -> JobProgress:
        """Wall time, as a live job has it."""
        mark = Micros(self._time * 1_000 - 2_000_000)
        source = SourceProgress(
            "flights", "Source: flights", values.SOURCE_ID, mark, pending_rows=12
        )
        return JobProgress(self._time, mark, (source,))

    def _moved(self, job: JobDetails) -> JobDetails:
        metrics = {**job.metrics, "uptime": self._time}
        return replace(job, metrics=metrics, vertices=tuple(map(self._vertex, job.vertices)))

    def _vertex(self, vertex: VertexDetails) -> VertexDetails:
        moved = {name: self._random.uniform(1, 1_000) for name in MOVING}
        subtasks = (
            replace(subtask, metrics={**subtask.metrics, **moved}) for subtask in vertex.subtasks
        )
        return replace(vertex, subtasks=tuple(subtasks))


async def serve(jobs: int, port: int) -> None:
    """Play the engine until killed."""
    service = MovingService()
    await service.begin(jobs)
    moving = asyncio.create_task(service.move())
    config = uvicorn.Config(create_app(service), port=port, log_level="warning", lifespan="off")
    await uvicorn.Server(config).serve()
    moving.cancel()


def make_rows(jobs: int, port: int) -> None:
    """A cluster, and jobs that run on it."""
    import django

    django.setup()

    from django.utils import timezone

    from controlplane.access.models import Team
    from controlplane.backends.models import Cluster
    from controlplane.jobs.models import Job, JobVersion, Run

    cluster = Cluster.objects.create(name="embedded", url=f"http://127.0.0.1:{port}")
    team = Team.objects.create(name="demo")
    for number in range(jobs):
        job = Job.objects.create(name=f"job-{number}", team=team, cluster=cluster)
        version = JobVersion.objects.create(
            job=job, number=1, filename="job.py", checksum="0" * 64, size_bytes=1
        )
        Run.objects.create(
            job=job,
            version=version,
            cluster=cluster,
            engine_job_id=engine_id(number),
            state_since=timezone.now(),
        )


if __name__ == "__main__":
    if sys.argv[1] == "rows":
        make_rows(int(sys.argv[2]), int(sys.argv[3]))
    else:
        asyncio.run(serve(int(sys.argv[2]), int(sys.argv[3])))
