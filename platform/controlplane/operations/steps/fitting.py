"""A step that compares the state of the running job with the new version, before anything stops.

    newest savepoint of the run ─┐
    else its newest checkpoint  ─┴─▶ engine compares it with the new graph ─▶ goes on | refuses

Guarantee   A version that cannot take over the state is refused with the engine's sentence, and the
            old version has not been touched. Not compared is: with an engine that cannot, and a run
            without any snapshot. The operation's result says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.backends.contract import Start
from controlplane.backends.errors import EngineRefused, Unsupported
from controlplane.jobs.models import Run
from controlplane.jobs.settings import settings_from
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Wait
from controlplane.operations.steps.rows import old_run_of
from controlplane.operations.steps.snapshotting import is_readable
from controlplane.snapshots.models import Savepoint

MOST_LOOKS = 8
"""For a first checkpoint, or for one that is still there when the new graph is built."""
SHOWN = 3


def fit(context: Context) -> Outcome:
    """Let the engine compare; refuse what would not restore."""
    location = _compared(context)
    if not location:
        return _not_yet(context, "there is no snapshot of the running job yet to compare with")
    try:
        found = context.engine.preflight(_request(context, location))
    except Unsupported as unsupported:
        return Done({"fit": f"not compared: {unsupported.message}"})
    except EngineRefused:
        if context.params.get("savepoint") or is_readable(context.engine, location):
            raise
        return _not_yet(context, f"snapshot {location} has been replaced meanwhile")
    if not found.ok:
        raise StepFailed(_sentence(found.refusals))
    return Done({"fit": f"compared with {location}: every state finds its operator"})


def _compared(context: Context) -> str:
    """A savepoint stays where it is; a checkpoint may be replaced while the graph is built."""
    if chosen := context.params.get("savepoint"):
        return Savepoint.objects.get(pk=chosen).location
    run = old_run_of(context.operation)
    saved = run.savepoints.filter(status=Savepoint.Status.COMPLETED).order_by("-id").first()
    if saved and is_readable(context.engine, saved.location):
        return saved.location
    return context.engine.newest_snapshot(run.engine_job_id)


def _not_yet(context: Context, why: str) -> Outcome:
    looks = context.result.get("fit_looks", 0) + 1
    if looks > MOST_LOOKS:
        return Done({"fit": f"not compared: {why}"})
    return Wait(f"{why}; looks again", 1.0, {"fit_looks": looks})


def _request(context: Context, location: str) -> Start:
    run: Run = old_run_of(context.operation)
    settings = settings_from(context.job.settings)
    return Start(
        artifact_id=context.result["artifact"],
        engine_job_id="",
        parallelism=context.params.get("parallelism") or settings.parallelism,
        arguments=settings.arguments,
        settings=settings.for_engine(run.job.name),
        savepoint_path=location,
        allow_non_restored=frozenset(context.params.get("drop", ())),
        accept_missing_input=frozenset(context.params.get("accept_missing_input", ())),
    )


def _sentence(refusals: Sequence[str]) -> str:
    more = len(refusals) - SHOWN
    return "; ".join(refusals[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
