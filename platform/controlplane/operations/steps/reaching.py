"""A step that finds out whether another cluster can read what a job's own cluster writes.

    newest savepoint of the run ─┐
    else its newest checkpoint  ─┴─▶ the other engine compares it with the graph ─▶ goes on | fails

Guarantee   A cluster that does not see the folder, or cannot take over the state, is refused with
            one sentence, and the job has not been touched.
"""

from __future__ import annotations

from dataclasses import replace

from controlplane.backends.contract import EngineBackend
from controlplane.backends.errors import EngineRefused, Unsupported
from controlplane.jobs.models import Run
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Wait
from controlplane.operations.steps.rows import old_run_of
from controlplane.operations.steps.snapshotting import is_readable
from controlplane.operations.steps.starting import request_of
from controlplane.snapshots.models import Savepoint

MOST_LOOKS = 8
"""For a first checkpoint, or for one that is still there when the other engine looks."""


def reach(context: Context, other: EngineBackend, name: str) -> Outcome:
    """Let `other`, the engine of cluster `name`, read the newest snapshot of the run."""
    run = old_run_of(context.operation)
    location = _newest(context, run)
    if not location:
        return _not_yet(context, f"{run.job.name} has no snapshot yet: take a savepoint first")
    try:
        _compare(context, other, run, location)
    except EngineRefused as refused:
        if not is_readable(context.engine, location):
            return _not_yet(context, f"snapshot {location} has been replaced meanwhile")
        msg = (
            f"cluster {name} cannot read {location}, which {run.cluster.name} wrote: "
            f"{refused.message}; let both see the same folder at the same path"
        )
        raise StepFailed(msg) from refused
    return Done({"reached": location})


def _newest(context: Context, run: Run) -> str:
    """A savepoint stays where it is and lies where the next one will; else a checkpoint."""
    saved = run.savepoints.filter(status=Savepoint.Status.COMPLETED).order_by("-id")
    found = (one.location for one in saved[:3] if is_readable(context.engine, one.location))
    return next(found, "") or context.engine.newest_snapshot(run.engine_job_id)


def _compare(context: Context, other: EngineBackend, run: Run, location: str) -> None:
    """Raises EngineRefused or StepFailed."""
    asked = replace(
        request_of(run, context.result["artifact"]), engine_job_id="", savepoint_path=location
    )
    try:
        found = other.preflight(asked)
    except Unsupported:
        other.savepoint(location)
        return
    if not found.ok:
        raise StepFailed("; ".join(found.refusals[:3]))


def _not_yet(context: Context, why: str) -> Outcome:
    looks = context.result.get("reach_looks", 0) + 1
    if looks > MOST_LOOKS:
        raise StepFailed(why)
    return Wait(f"{why}; looks again", 1.0, {"reach_looks": looks})
