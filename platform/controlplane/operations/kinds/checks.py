"""What must hold before an operation begins, each with the sentence that refuses it."""

from __future__ import annotations

from controlplane.access.errors import Refused, conflict
from controlplane.jobs.models import TERMINAL, Job, JobVersion, Run
from controlplane.snapshots.models import Savepoint


def live_run(job: Job) -> Run | None:
    """The run that the job has just now, if any."""
    alive = job.runs.filter(purpose=Run.Purpose.LIVE).exclude(state__in=TERMINAL)
    return alive.select_related("job__cluster", "version").first()


def require_live_run(job: Job, to: str) -> Run:
    """The job's run. Raises Refused when it has none."""
    run = live_run(job)
    if run is None:
        msg = f"job {job.name} is not running: there is nothing to {to}; start it first"
        raise Refused(409, "not_running", msg)
    return run


def require_no_live_run(job: Job) -> None:
    """Refuse a second run beside the first."""
    if run := live_run(job):
        msg = f"job {job.name} has a run already ({run.state}): stop it first, or upgrade it"
        raise conflict(msg)


def require_version(job: Job, key: int) -> JobVersion:
    """A version of this very job."""
    return JobVersion.objects.get(pk=key, job=job)


def require_usable(job: Job, key: int | None) -> Savepoint | None:
    """A complete savepoint of this very job, or none. Raises Refused."""
    if key is None:
        return None
    savepoint = Savepoint.objects.get(pk=key, job=job)
    if savepoint.status != Savepoint.Status.COMPLETED:
        msg = (
            f"savepoint {savepoint.pk} of {job.name} cannot be used: "
            f"it is {savepoint.get_status_display().lower()}; choose a complete one"
        )
        raise Refused(409, "savepoint", msg, {"savepoint": msg})
    return savepoint
