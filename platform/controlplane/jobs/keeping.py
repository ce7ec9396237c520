"""What people decide of keeping a job running: pause it, let it go on, or want the job no more.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.errors import Refused
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.jobs import lifecycle
from controlplane.jobs.health import live_run
from controlplane.jobs.models import Job, Upkeep


@transaction.atomic
def pause_upkeep(job: Job, actor: User, reason: str = "") -> Upkeep:
    """Let the job be as it is when its run ends, until somebody resumes. Operator."""
    require(actor, job, Role.OPERATOR)
    why = reason.strip()[:500]
    values = {"paused": True, "paused_by": actor, "paused_reason": why}
    upkeep, _ = Upkeep.objects.update_or_create(job=job, defaults=values)
    record(actor, "upkeep.pause", job.name, job=job, reason=reason, after={"paused": True})
    return upkeep


@transaction.atomic
def resume_upkeep(job: Job, actor: User, reason: str = "") -> Upkeep:
    """Start the job again when its run ends, and at once if it has; tries count anew. Operator."""
    require(actor, job, Role.OPERATOR)
    values = {"paused": False, "paused_by": None, "paused_reason": "", "tries": 0}
    upkeep, _ = Upkeep.objects.update_or_create(job=job, defaults=values | {"not_before": None})
    record(actor, "upkeep.resume", job.name, job=job, reason=reason, after={"paused": False})
    return upkeep


@transaction.atomic
def want_no_more(job: Job, actor: User, reason: str = "") -> Job:
    """A job whose run has ended stays so. Operator."""
    require(actor, job, Role.OPERATOR)
    if live_run(job):
        msg = f"job {job.name} runs: stop it, and it is wanted no more"
        raise Refused(409, "running", msg)
    before = {"desired_state": job.desired_state}
    lifecycle.want(job, Job.Desired.STOPPED)
    after = {"desired_state": job.desired_state}
    record(actor, "job.unwant", job.name, job=job, reason=reason, before=before, after=after)
    return job


WISHES = {"pause": pause_upkeep, "resume": resume_upkeep, "give_up": want_no_more}
"""What a person may want of the upkeep of a job."""
