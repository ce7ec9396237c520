"""The only functions that change a job's desired state and the state of a run.

    INITIALIZING → CREATED → RUNNING ⇄ RESTARTING …     as the engine reports
                 ↘ FAILED | CANCELED | FINISHED | LOST   for good

Guarantee   A run that has ended stays as it is: a report that comes late changes nothing. Each
            change is a compare-and-set: collector and operations may report the same at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.jobs.models import TERMINAL, Job, JobVersion, Run, RunState
from controlplane.live import topics
from controlplane.live.publish import publish_on_commit
from controlplane.moments import epoch_ms
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.replay import lifecycle as replays

if TYPE_CHECKING:
    from controlplane.backends.models import Cluster
    from controlplane.snapshots.models import Savepoint


class Lineage(TypedDict, total=False):
    """Where a run comes from, beyond its version."""

    restored_path: str
    """Snapshot folder, where it is no savepoint of the catalogue."""
    dropped: list[str]
    """State that is left behind with consent."""
    accepted_gaps: list[str]
    """Sources that go on without all input, with consent."""
    settings: dict[str, Any]
    """The settings it is started with; by default the job's."""
    reason: str
    """Why it is started, and from what: one sentence."""
    started_by: User | None
    written_from: datetime | None
    """By default, of a live run, that of the run whose state it goes on from."""
    written_until: datetime | None


UNKNOWN_FOR = timedelta(seconds=30)
"""How long after its start an engine may not know a run yet."""


def want(job: Job, desired: Job.Desired) -> None:
    """Note what people want of the job."""
    Job.objects.filter(pk=job.pk).update(desired_state=desired)
    job.desired_state = desired


def place(job: Job, cluster: Cluster) -> None:
    """From now on the job's runs begin there."""
    Job.objects.filter(pk=job.pk).update(cluster=cluster)
    job.cluster = cluster


def create_run(
    job: Job,
    version: JobVersion,
    engine_job_id: str,
    now: datetime,
    *,
    parallelism: int,
    purpose: Run.Purpose = Run.Purpose.LIVE,
    restored_from: Savepoint | None = None,
    **lineage: Unpack[Lineage],
) -> Run:
    """A run that is about to be started; asked again with the same id, the same run."""
    path = restored_from.location if restored_from else lineage.get("restored_path", "")
    if "written_from" not in lineage and purpose == Run.Purpose.LIVE:
        lineage["written_from"] = _written_from(job, restored_from, path)
    run, created = Run.objects.get_or_create(
        engine_job_id=engine_job_id,
        defaults={
            "job": job,
            "version": version,
            "cluster": job.cluster,
            "purpose": purpose,
            "state": RunState.INITIALIZING,
            "state_since": now,
            "parallelism": parallelism,
            "restored_from": restored_from,
            "restored_path": path,
            "settings": job.settings,
            **lineage,
        },
    )
    if created and purpose == Run.Purpose.LIVE:
        _tell(run)
    return run


def _written_from(job: Job, savepoint: Savepoint | None, path: str) -> datetime | None:
    """What a live run that goes on from there has to leave out: it has been written already.

    As the last that started there left out, or else the one that the state is of.
    """
    live = job.runs.filter(purpose=Run.Purpose.LIVE)
    if path and (before := live.filter(restored_path=path).first()):
        return before.written_from
    if savepoint is not None:
        return savepoint.run.written_from if savepoint.run else None
    cut = live.exclude(written_from=None)
    return next((run.written_from for run in cut if run.engine_job_id in path), None)


def take_over(run: Run) -> None:
    """A run that was started beside the live one, which has ended, is the live one now."""
    beside = Run.objects.filter(pk=run.pk, purpose=Run.Purpose.REPLAY)
    if beside.update(purpose=Run.Purpose.LIVE):
        run.refresh_from_db()
        _tell(run)


def resize(run: Run, parallelism: int) -> None:
    """The run has another parallelism now, and so has the job's next start."""
    keep_parallelism(run.job, parallelism)
    settings = run.settings and run.settings | {"parallelism": parallelism}
    Run.objects.filter(pk=run.pk).update(parallelism=parallelism, settings=settings)


@transaction.atomic
def keep_parallelism(job: Job, parallelism: int) -> None:
    """The next start has this parallelism."""
    locked = Job.objects.select_for_update().get(pk=job.pk)
    locked.settings = locked.settings | {"parallelism": parallelism}
    locked.save(update_fields=["settings"])


@transaction.atomic
def observe(
    run: Run,
    state: str,
    now: datetime,
    *,
    attempt: int | None = None,
    failure: str = "",
    plan: Mapping[str, Any] | None = None,
) -> bool:
    """Note how the engine says the run is; whether its state changed.

    `failure` is why it failed or restarted last; the latest is kept.
    """
    seen = RunState(state)
    values: dict[str, Any] = {"last_seen": now}
    if attempt is not None:
        values["attempt"] = attempt
        if attempt > run.attempt:
            values["restarted_at"] = now
    if failure:
        values["failure"] = failure
    if plan:
        values["plan"] = dict(plan)
    alive = Run.objects.filter(pk=run.pk).exclude(state__in=TERMINAL)
    if not alive.update(**values):
        return False
    changed = _change(run, seen, now)
    run.refresh_from_db()
    return changed


def lose(run: Run, now: datetime, sentence: str) -> bool:
    """The engine answers and does not know the run: it is lost, unless it is only just starting."""
    starting = Operation.objects.filter(run=run, state__in=UNFINISHED)
    if now - run.started_at < UNKNOWN_FOR or starting.exists():
        return False
    return observe(run, RunState.LOST, now, failure=sentence)


def _change(run: Run, seen: RunState, now: datetime) -> bool:
    moved = Run.objects.filter(pk=run.pk).exclude(state__in=TERMINAL).exclude(state=seen)
    ended_at = now if seen in TERMINAL else None
    if not moved.update(state=seen, state_since=now, ended_at=ended_at):
        return False
    run.refresh_from_db()
    if run.purpose == Run.Purpose.LIVE:
        _tell(run)
    else:
        replays.run_changed(run, now)
    return True


def _tell(run: Run) -> None:
    record = {
        "state": run.state,
        "state_since_ms": epoch_ms(run.state_since),
        "run": run.pk,
        "attempt": run.attempt,
    }
    publish_on_commit(topics.job(run.job_id), record)
    publish_on_commit(topics.FLEET, {str(run.job_id): {"state": run.state}})
