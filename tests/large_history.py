"""A control plane that has been in use for long: many jobs with checkpoints and savepoints.

    fill(team, cluster, jobs=500, checkpoints=100_000)

Rows are written in bulk and are alike: one checkpoint in fifty has failed, and one job in
twenty. The first job has as many checkpoints as are kept of a run.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from controlplane.access.models import Team
from controlplane.backends.models import Cluster
from controlplane.collector.mirror import CHECKPOINTS_KEPT
from controlplane.jobs.models import Job, JobVersion, Run
from controlplane.snapshots.models import Checkpoint, Savepoint

PLAN = {
    "nodes": [
        {"id": "a1", "parallelism": 2, "description": "flights", "operators": ["flights"]},
        {
            "id": "b2",
            "parallelism": 2,
            "description": "daily",
            "operators": ["daily"],
            "inputs": [{"id": "a1", "num": 0, "ship_strategy": "HASH"}],
        },
    ]
}


def fill(
    team: Team,
    cluster: Cluster,
    *,
    jobs: int,
    checkpoints: int,
    savepoints: int = 10,
    first: int = 0,
) -> list[Job]:
    """Write them; the jobs, `job-<first>` first."""
    now = timezone.now()
    made = Job.objects.bulk_create(
        [
            Job(name=f"job-{number:03}", team=team, cluster=cluster)
            for number in range(first, first + jobs)
        ]
    )
    versions = JobVersion.objects.bulk_create(
        [
            JobVersion(job=job, number=1, filename="job.py", checksum="0" * 64, size_bytes=1)
            for job in made
        ]
    )
    runs = Run.objects.bulk_create(
        [
            Run(
                job=job,
                version=version,
                cluster=cluster,
                engine_job_id=f"{job.pk:032x}",
                state="FAILED" if number % 20 == 19 else "RUNNING",
                state_since=now,
                failure="disk is full: got 0 bytes; free some" if number % 20 == 19 else "",
                plan=PLAN,
            )
            for number, (job, version) in enumerate(zip(made, versions, strict=True))
        ]
    )
    most = min(CHECKPOINTS_KEPT, checkpoints // 2)
    others = (checkpoints - most) // max(1, jobs - 1)
    rows = _checkpoints(runs[0], most, now)
    for run in runs[1:]:
        rows += _checkpoints(run, others, now)
    Checkpoint.objects.bulk_create(rows, batch_size=2_000)
    Savepoint.objects.bulk_create(
        [
            Savepoint(
                job=run.job,
                run=run,
                version=run.version,
                location=f"/data/savepoints/{run.job.name}/{number}",
                origin="scheduled",
                status="completed",
                event_time=now,
                size_bytes=7_800,
            )
            for run in runs
            for number in range(savepoints)
        ],
        batch_size=1_000,
    )
    return made


def _checkpoints(run: Run, count: int, now: datetime) -> list[Checkpoint]:
    return [
        Checkpoint(
            run=run,
            engine_checkpoint_id=number,
            status="failed" if number % 50 == 49 else "completed",
            trigger_at=now - timedelta(seconds=count - number),
            duration_ms=100 + number % 7,
            size_bytes=8_000,
            failure="expired" if number % 50 == 49 else "",
            detail={"type": "CHECKPOINT", "subtasks": 6, "acknowledged": 6},
        )
        for number in range(count)
    ]
