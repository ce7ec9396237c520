"""Rows of the seeded server's database: jobs with savepoints, and what a comparison has found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

import seeded_hostile
import seeded_replays
from controlplane.access.models import Team
from controlplane.backends.models import Cluster
from controlplane.jobs import actions
from controlplane.jobs.models import Job, JobVersion, Run
from controlplane.replay.actions import start_replay as start
from controlplane.replay.models import Difference, Replay, ReplayOutput
from controlplane.snapshots.models import Savepoint
from hostile import MARKUP
from people import JOB_FILE
from seeded_engine import UP_MS
from seeded_jobs import START_MS

LABELS = ("before config change", "nightly", "nightly")
HOUR_MS = 3_600_000


def add_job(job_id: str, name: str, parallelism: int) -> None:
    """One that runs, with three savepoints."""
    settled = {"parallelism": parallelism, "checkpoint_interval_ms": 10_000}
    job = Job.objects.create(
        name=name, team=Team.objects.get(), cluster=Cluster.objects.get(), settings=settled
    )
    version = JobVersion.objects.create(
        job=job, number=42, filename=f"{name}.py", checksum="0" * 64, size_bytes=1
    )
    _run(job, version, job_id, parallelism)


def add_hostile() -> None:
    """One whose texts are markup."""
    add_job(seeded_hostile.ID, "hostile", 2)
    Savepoint.objects.filter(job__name="hostile").update(label=MARKUP)


def add_revenue() -> None:
    """One of two versions, the first of which runs."""
    user, name = User.objects.get(username="mara"), seeded_replays.NAME
    settled = {"parallelism": seeded_replays.PARALLELISM}
    job = actions.create_job(name, Team.objects.get(), user, f"{name}.py", JOB_FILE, settled)
    _run(job, job.versions.get(), seeded_replays.ID, seeded_replays.PARALLELISM)
    note = "a cancelled order has no revenue"
    actions.add_version(job, user, f"{name}_v2.py", JOB_FILE + b"# v2\n", note)


def _run(job: Job, version: JobVersion, job_id: str, parallelism: int) -> None:
    user, began = User.objects.get(username="mara"), _at(START_MS - UP_MS)
    run = Run.objects.create(
        job=job, version=version, cluster=job.cluster, engine_job_id=job_id, state="RUNNING",
        state_since=began, parallelism=parallelism,
    )  # fmt: skip
    Run.objects.filter(pk=run.pk).update(started_at=began)
    for days, label in zip(seeded_replays.SAVEPOINTS, LABELS, strict=True):
        one = Savepoint.objects.create(
            job=job, run=run, version=version, origin="manual", label=label, status="completed",
            location=f"/data/savepoints/{job.name}-{days}", size_bytes=318_000_000_000,
            created_by=user,
        )  # fmt: skip
        taken = _at(START_MS) - timedelta(days=days)
        Savepoint.objects.filter(pk=one.pk).update(created_at=taken, event_time=taken)


def start_replay() -> None:
    """Replay its second version from the newest savepoint."""
    user, job = User.objects.get(username="mara"), Job.objects.get(name=seeded_replays.NAME)
    savepoint = job.savepoints.latest("event_time")
    replay, _ = start(savepoint, job.versions.get(number=2), user, parallelism=2)
    Replay.objects.filter(pk=replay.pk).update(level_for_s=1)


def differ() -> None:
    """The newest replay's output was compared: two kinds of differences have been found."""
    replay, now = Replay.objects.latest("number"), _at(START_MS)
    place = Path(settings.HEADWATER_HOME) / "out"
    begin = int(START_MS // HOUR_MS - 24) * HOUR_MS
    output = ReplayOutput.objects.create(
        replay=replay, uid="hourly", name="hourly-revenue", kind="parquet", place=str(place),
        beside=f"{place}@{replay.name}", keys=["country", "window_start"],
        time_column="window_end", columns=["revenue", "orders"], compared_to=now, compared_at=now,
        hours=[_hour(begin, n) for n in range(24)],
    )  # fmt: skip
    example = {"at": 1_000 * begin, "keys": {"country": "NL", "window_start": {"ms": begin}}}
    changed = {**example, "old": {"revenue": 1_204.5}, "new": {"revenue": 1_187.25}}
    added = {**example, "old": {}, "new": {"revenue": 80.0, "orders": 2}}
    found = (("changed", ["revenue"], 60, changed), ("only_new", [], 1, added))
    for verdict, fields, rows, shown in found:
        Difference.objects.create(
            output=output, verdict=verdict, fields=fields, rows=rows, first_seen=_at(begin),
            examples=[shown],
        )  # fmt: skip


def _hour(begin: int, number: int) -> list[int]:
    """When, rows equal, changed, only old, only new."""
    changed, added = 12 * (number % 5 == 2), int(number == 7)
    return [begin + number * HOUR_MS, 3_100 + 7 * number, changed, 0, added]


def _at(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)
