"""The life of a job on a real Apache Flink: `make test-flink` fetches one and runs this."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import httpx
import pytest
from django.utils import timezone

from controlplane.backends.actions import register_cluster
from controlplane.backends.models import Cluster
from controlplane.backends.watch import EngineWatch
from controlplane.jobs import actions
from controlplane.jobs.models import RunState
from controlplane.operations.models import Operation
from controlplane.snapshots.actions import mark_savepoint, request_savepoint
from controlplane.snapshots.housekeeping import keep_house
from controlplane.snapshots.models import Savepoint
from flink_process import SUMS, compiled, flink_cluster
from on_a_real_engine import succeed

pytestmark = pytest.mark.flink

PATIENCE_S = 300


@pytest.fixture(scope="module")
def home():
    return Path(os.environ["FLINK_HOME"])


@pytest.fixture
def url(home, tmp_path):
    with flink_cluster(home, tmp_path) as address:
        yield address


@pytest.fixture
def sums(home, url, team, alice, django_user_model, tmp_path, settings):
    """Never started; the cluster was registered by its address alone."""
    settings.HEADWATER_SAVEPOINTS = tmp_path / "savepoints"
    root = django_user_model.objects.create_superuser("root")
    cluster, found = register_cluster(root, "far", url)
    assert (cluster.kind, cluster.version[:2]) == (Cluster.Kind.FLINK, "2."), found.sentence
    jar = compiled(home, SUMS, tmp_path)
    chosen = {"parallelism": 2, "checkpoint_interval_ms": 500}
    return actions.create_job("sums", team, alice, jar.name, jar.read_bytes(), chosen)


def folder_of(location: str) -> Path:
    """Of what Flink calls `file:/folder`."""
    return Path(location.removeprefix("file:"))


def restored_from(job) -> Path:
    """Where Flink says that the job's newest run began."""
    run = job.runs.latest("pk")
    address = f"{job.cluster.url}/jobs/{run.engine_job_id}/checkpoints"
    answer = httpx.get(address, timeout=PATIENCE_S).json()
    return folder_of(answer["latest"]["restored"]["external_path"])


async def seen_flowing(url: str, job_id: str):
    """The job as the collector sees it, once Flink has figures of it."""
    watch = EngineWatch(url)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        job = (await watch.look([job_id])).jobs[job_id]
        if all(one.in_rate and one.watermark_ms for one in job.vertices) and job.completed:
            break
        await asyncio.sleep(0.5)
    await watch.close()
    return job


def test_a_jar_runs_is_seen_rescaled_stopped_upgraded_and_its_savepoints_go(sums, alice, url):
    # It runs, and the collector sees what flows.
    succeed(actions.deploy(sums, alice))
    run = sums.runs.get()
    assert run.state == RunState.RUNNING
    seen = asyncio.run(seen_flowing(url, run.engine_job_id))
    assert [vertex.parallelism for vertex in seen.vertices] == [2, 2]
    assert all(vertex.busy is not None for vertex in seen.vertices)
    assert min(vertex.watermark_ms for vertex in seen.vertices) > 1_700_000_000_000

    # A savepoint is taken; the job goes on at another parallelism with its state.
    succeed(request_savepoint(sums, alice, "first"))
    first = Savepoint.objects.get()
    assert (folder_of(first.location) / "_metadata").is_file()
    rescaled = succeed(actions.rescale(sums, alice, 1))
    kept = Savepoint.objects.get(pk=rescaled.result["savepoint"])
    assert restored_from(sums) == folder_of(kept.location)

    # It stops, and starts again from there; another version takes over with the state.
    stopped = succeed(actions.stop(sums, alice))
    last = Savepoint.objects.get(pk=stopped.result["savepoint"])
    succeed(actions.deploy(sums, alice, sums.versions.get(), last))
    assert restored_from(sums) == folder_of(last.location)
    version = sums.versions.get()
    second = actions.add_version(sums, alice, "sums_v2.jar", version.artifact.read_bytes())
    upgraded = succeed(actions.upgrade(sums, alice, second))
    kept = Savepoint.objects.get(pk=upgraded.result["savepoint"])
    assert restored_from(sums) == folder_of(kept.location)
    succeed(actions.cancel(sums, alice))

    # What nobody needs is deleted by Flink itself.
    mark_savepoint(first, alice, at_once=True)
    keep_house(timezone.now())
    succeed(Operation.objects.get(kind="dispose"))
    assert not folder_of(first.location).exists()
