"""Keeps wanted jobs running: finds those whose run has ended, decides, and starts them again.

    beat ─▶ wanted, without a run, nothing under way ─▶ decide ─▶ deploy | a sentence

Guarantee   Never two at once: an operation has the job for itself, and a job that an engine has
            found again is cancelled there before another is started. Two beats that decide the same
            begin one operation.
Cost        one query while all is well.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from controlplane.access.errors import Refused
from controlplane.backends.contract import EngineBackend
from controlplane.backends.errors import EngineAway, EngineError, UnknownJob
from controlplane.backends.registry import client_for
from controlplane.jobs.health import is_healthy
from controlplane.jobs.models import TERMINAL, Job, Run, RunState, Upkeep
from controlplane.jobs.restorable import restorable
from controlplane.jobs.running import agreed
from controlplane.jobs.settings import settings_from
from controlplane.jobs.upkeep import Ended, Found, Rest, Start, Tries, decide, rests
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.operations.start import start_operation

FORGIVEN_AFTER = timedelta(minutes=10)
"""How long a run must be up and healthy before earlier tries no longer count."""


def reconcile(now: datetime) -> int:
    """Look after every wanted job that does not run; how many were started."""
    _forgive(now)
    return sum(_look_after(job, now) for job in unattended())


def _forgive(now: datetime) -> None:
    """Earlier tries no longer count for a job whose run has been healthy for a while."""
    up = Run.objects.filter(
        purpose=Run.Purpose.LIVE,
        state=RunState.RUNNING,
        state_since__lte=now - FORGIVEN_AFTER,
        job__upkeep__tries__gt=0,
    )
    healthy = [run.job_id for run in up.select_related("job") if is_healthy(run)]
    if healthy:
        Upkeep.objects.filter(job__in=healthy).update(tries=0, not_before=None)


def unattended() -> QuerySet[Job]:
    """Wanted jobs without a live run, with which nothing goes on."""
    live = Run.objects.filter(job=OuterRef("pk"), purpose=Run.Purpose.LIVE)
    busy = Operation.objects.filter(job=OuterRef("pk"), run__purpose=Run.Purpose.LIVE)
    starting = Operation.objects.filter(job=OuterRef("pk"), kind="deploy")
    return Job.objects.filter(
        Exists(live),
        ~Exists(live.exclude(state__in=TERMINAL)),
        ~Exists(busy.filter(state__in=UNFINISHED)),
        ~Exists(starting.filter(state__in=UNFINISHED)),
        desired_state=Job.Desired.RUNNING,
    ).select_related("cluster", "team", "upkeep__paused_by")


def _look_after(job: Job, now: datetime) -> bool:
    run = (
        job.runs.filter(purpose=Run.Purpose.LIVE).select_related("restored_from", "cluster").first()
    )
    if run is None:
        return False
    ended, tries = Ended(run.pk, RunState(run.state), run.failure), tries_of(job)
    try:
        decision = rests(ended, tries) or _ask(job, run, ended, tries, now)
    except EngineAway as away:
        decision = Rest(f"waits for the engine {job.cluster.name}: {away.message}")
    except EngineError as error:
        decision = Rest(f"not started again: {error.message}")
    if isinstance(decision, tuple):
        return _start(job, run, tries, *decision, now)
    if decision is not None:
        note(job, decision.sentence, now)
    return False


def _ask(
    job: Job, run: Run, ended: Ended, tries: Tries, now: datetime
) -> tuple[Start, Found] | Rest | None:
    """What the engine and its storage say of the run, and what follows from it."""
    if tries.not_before and now < tries.not_before:
        return None
    engine = client_for(run.cluster)
    if state := _still_there(engine, run):
        return Rest(f"the engine has run {run.pk} again ({state}): it is cancelled there first")
    found = restorable(run, engine)
    require = settings_from(job.settings).require_state
    decision = decide(ended, tries, found, now, require_state=require)
    return (decision, found) if isinstance(decision, Start) else decision


def _still_there(engine: EngineBackend, run: Run) -> str:
    """The state of a job that has ended for us and not for the engine; it is told to end."""
    try:
        seen = engine.job(run.engine_job_id)
    except UnknownJob:
        return ""
    if seen.has_ended:
        return ""
    engine.cancel(run.engine_job_id)
    return seen.state


def tries_of(job: Job) -> Tries:
    """What was tried since a run was healthy, and whether somebody paused it."""
    kept = getattr(job, "upkeep", None)
    if kept is None:
        return Tries()
    paused = ""
    if kept.paused:
        why = f": {kept.paused_reason}" if kept.paused_reason else ""
        paused = f"paused by {kept.paused_by or 'the platform'}{why}"
    return Tries(kept.tries, kept.not_before, paused)


@transaction.atomic
def _start(job: Job, run: Run, tries: Tries, decision: Start, found: Found, now: datetime) -> bool:
    params: dict[str, Any] = {
        "version": run.version_id,
        "savepoint": found.savepoint,
        "snapshot": found.path if found.savepoint is None else "",
        "decision": decision.sentence,
        "upkeep": True,
    }
    params |= _agreed(run, found)
    # Of two beats that decide the same the second finds the first one's operation.
    key = f"upkeep-{run.pk}-{tries.number}"
    try:
        with transaction.atomic():
            start_operation("deploy", job, None, params, key, reason=decision.sentence, now=now)
    except Refused as refused:
        note(job, f"not started again: {refused.message}", now)
        return False
    Upkeep.objects.update_or_create(
        job=job,
        defaults={
            "tries": tries.number + 1,
            "not_before": decision.not_before,
            "decision": decision.sentence,
            "decided_at": now,
        },
    )
    return True


def _agreed(run: Run, found: Found) -> dict[str, list[str]]:
    """What somebody agreed to lose with this snapshot, when the same start is made once more."""
    if found.path != run.restored_path:
        return {}
    return agreed(run.dropped, run.accepted_gaps)


def note(job: Job, sentence: str, now: datetime) -> None:
    """Keep what was decided, when it is something new."""
    kept = getattr(job, "upkeep", None)
    if kept is None or kept.decision != sentence[:500]:
        Upkeep.objects.update_or_create(
            job=job, defaults={"decision": sentence[:500], "decided_at": now}
        )
