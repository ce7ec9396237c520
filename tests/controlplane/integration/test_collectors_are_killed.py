"""A real collector is killed while things happen, over and over: the mirror is whole in the end."""

from __future__ import annotations

import itertools
import random
import sys
import time
from copy import deepcopy
from dataclasses import replace

import pytest

from controlplane.supervisor.redis_server import redis_binary
from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.stats import CheckpointStatus
from engine.clock import now_ms
from engine.rest.model.jobs import Failure, FailureHistory
from engine.rest.model.requests import Program, RunRequest
from engine.testing import fake_values as values
from engine.testing.cluster import PATIENCE_S
from engine.testing.fake_service import FakeService
from loopback_engine import served
from process_home import ProcessHome

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(redis_binary() is None, reason="no Redis server for this platform"),
]

LIVE = "a" * 32
KILLS = 2
BEGIN = """
import sys
import django
django.setup()
from django.utils import timezone
from controlplane.access.models import Team
from controlplane.backends.models import Cluster
from controlplane.jobs.models import Job, JobVersion, Run
cluster = Cluster.objects.create(name="lab", url=sys.argv[1])
job = Job.objects.create(name="flights", team=Team.objects.create(name="t"), cluster=cluster)
version = JobVersion.objects.create(
    job=job, number=1, filename="flights.py", checksum="0" * 64, size_bytes=1
)
Run.objects.create(
    job=job, version=version, cluster=cluster, engine_job_id=sys.argv[2], state_since=timezone.now()
)
"""


class Eventful(FakeService):
    """Checkpoints complete and fail, and attempts end; fewer than an engine remembers."""

    def happen(self, number: int) -> None:
        """The next thing, replaced as a whole: another thread reads meanwhile."""
        job, at_ms = self.known[LIVE], now_ms()
        log = deepcopy(self.logs[LIVE])
        made = replace(values.checkpoint(100 + number, job.plan, at_ms), duration_ms=number)
        if number % 4 == 1:
            failed = {"status": CheckpointStatus.FAILED, "failed_ms": at_ms + number}
            made = replace(made, **failed, reason=FailureReason.EXPIRED, failure="too slow")
        log.put(made)
        self.logs[LIVE] = log
        if number % 3 == 0:
            ended = Failure("FunctionError", f"row {number} is torn", at_ms)
            entries = (ended, *self.histories[LIVE].entries)
            self.histories[LIVE] = FailureHistory(entries)
            metrics = job.metrics | {"numRestarts": len(entries)}
            self.known[LIVE] = replace(job, metrics=metrics)

    def told(self) -> tuple[object, ...]:
        """What is to be found in the database."""
        checkpoints = {
            (one.id, one.status.lower(), one.duration_ms)
            for one in self.logs[LIVE].history().history
        }
        entries = self.histories[LIVE].entries
        return checkpoints, {one.message for one in entries}, len(entries)


def mirrored(home):
    checkpoints = home.rows(
        "SELECT engine_checkpoint_id, status, duration_ms FROM snapshots_checkpoint"
    )
    failures = home.rows("SELECT sentence FROM jobs_runfailure")
    assert len(checkpoints) == len(set(checkpoints))
    assert len(failures) == len(set(failures))
    ((attempt,),) = home.rows("SELECT attempt FROM jobs_run")
    return set(checkpoints), {sentence for (sentence,) in failures}, attempt


def wait_for(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def collect(home):
    return home.begin(sys.executable, "manage.py", "collect")


@pytest.fixture
async def service(tmp_path):
    service = Eventful()
    path = tmp_path / "flights.py"
    path.write_text("")
    artifact = await service.upload_artifact("flights.py", path)
    await service.run(RunRequest(Program(artifact.id), job_id=LIVE))
    return service


def test_a_collector_that_is_killed_over_and_over_loses_nothing(service, tmp_path):
    chance, numbers = random.Random(7), itertools.count(1)
    with served(service) as url, ProcessHome(tmp_path) as home:
        home.run("-c", BEGIN, url, LIVE)
        for _ in range(KILLS):
            seen = mirrored(home)
            collector = collect(home)
            wait_for(lambda seen=seen: mirrored(home) != seen)
            for _ in range(10):
                service.happen(next(numbers))
                time.sleep(chance.uniform(0.05, 0.15))  # a look begins every second
            collector.kill()
            collector.wait()
            for _ in range(4):
                service.happen(next(numbers))
        collect(home)
        wait_for(lambda: mirrored(home) == service.told())
