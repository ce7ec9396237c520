"""What must hold before an operation begins, each with the sentence that refuses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.access.errors import Refused, conflict, not_found
from controlplane.jobs.health import live_run
from controlplane.jobs.models import Job, JobVersion, Run
from controlplane.jobs.settings import settings_from
from controlplane.operations.steps.rows import STATELESS
from controlplane.replay.models import ENDED
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.usable import why_unusable


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


def require_no_replay(job: Job, to: str) -> None:
    """Refuse while a replay runs beside the job, on its cluster."""
    if replay := job.replays.exclude(status__in=ENDED).first():
        msg = f"{replay} runs beside {job.name}: abandon it, or wait for its end, to {to} the job"
        raise Refused(409, "replay", msg, {"cluster": msg})


def require_version(job: Job, key: int) -> JobVersion:
    """A version of this very job."""
    return JobVersion.objects.get(pk=key, job=job)


def require_usable(job: Job, key: int | None) -> Savepoint | None:
    """A complete savepoint of this very job that can be read, or none. Raises Refused."""
    if key is None:
        return None
    savepoint = Savepoint.objects.filter(pk=key, job=job).first()
    if savepoint is None:
        raise not_found(what="savepoint", name=f"{key} of {job.name}")
    if reason := why_unusable(savepoint):
        msg = f"savepoint {savepoint.pk} of {job.name} cannot be used: {reason}"
        raise Refused(409, "savepoint", msg, {"savepoint": msg})
    return savepoint


def require_mode(job: Job, run: Run, params: Mapping[str, Any]) -> None:
    """A known mode, and consent where the state is left behind. Raises Refused."""
    mode = params.get("mode", "savepoint")
    if mode != STATELESS:
        return
    if settings_from(job.settings).require_state:
        msg = (
            f"job {job.name} requires state, so it never starts empty: "
            "choose another mode, or turn the setting off"
        )
        raise Refused(409, "require_state", msg, {"mode": msg})
    if not params.get("consent"):
        msg = f"{lost_without_state(run)}; confirm that, or choose another mode"
        raise Refused(409, "consent", msg, {"consent": msg})


def lost_without_state(run: Run) -> str:
    """What a start without state leaves behind, in one sentence."""
    return (
        f"starting {run.job.name} without its state loses what every operator of run {run.pk} "
        f"has gathered since {run.started_at:%d %b %H:%M} UTC or before, and reads the input from "
        "its beginning again"
    )


def require_difference(job: Job, run: Run, version: JobVersion, params: Mapping[str, Any]) -> None:
    """Refuse an upgrade to what runs already: the version, its settings, its state."""
    asked = params.get("parallelism") or settings_from(job.settings).parallelism
    same = run.version_id == version.pk and asked == run.parallelism
    settled = not run.settings or settings_from(run.settings) == settings_from(job.settings)
    if same and settled and not params.get("savepoint") and params.get("mode") != STATELESS:
        msg = f"job {job.name} runs version {version.number} already; choose another"
        raise Refused(409, "same_version", msg, {"version": msg})
