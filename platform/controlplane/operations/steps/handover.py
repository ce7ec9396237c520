"""Steps that hand a job's outputs to another run: stop the replay, exchange, start again.

Guarantee   outputs are exchanged only while nobody writes: each run before was seen to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypedDict

from controlplane.backends.errors import UnknownTrigger
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Run, RunState
from controlplane.jobs.settings import settings_from
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Wait
from controlplane.operations.kinds.deploy import adopt
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, snapshotting, starting
from controlplane.operations.steps.rows import (
    Source,
    folder_of,
    old_run_of,
    replay_of,
    savepoint_of,
    version_of,
)
from controlplane.replay.outputs import handing
from controlplane.replay.outputs.tables import OutputUnreadable
from controlplane.snapshots import lifecycle as savepoints
from controlplane.snapshots.models import Savepoint


class Span(TypedDict, total=False):
    """The event times that a run writes, where not all."""

    written_from: datetime
    written_until: datetime


def replay_run_of(context: Context) -> Run:
    """The run of the replay, which writes beside the targets."""
    run = replay_of(context.operation).run
    if run is None:
        msg = f"{replay_of(context.operation)} was never started"
        raise StepFailed(msg)
    return run


def stop_replay(context: Context) -> Outcome:
    """Ask the replay's run to stop with a savepoint, once every task of it runs."""
    run = replay_run_of(context)
    job = context.engine.job(run.engine_job_id)
    if job.has_ended:
        if _replays_savepoint(context):
            return Done()
        msg = f"{job.name} has ended ({job.state}) without a savepoint: replay again"
        raise StepFailed(msg)
    if not job.is_up:
        return Wait(starting.waiting_text(job))
    trigger_id = context.derived_id("stop replay")
    context.engine.stop(run.engine_job_id, _folder(context), trigger_id, drain=False)
    return Done()


def await_replays_savepoint(context: Context) -> Outcome:
    """See that savepoint complete, and read its manifest."""
    run = replay_run_of(context)
    try:
        status = context.engine.savepoint_status(
            run.engine_job_id, context.derived_id("stop replay")
        )
    except UnknownTrigger:
        location = _replays_savepoint(context)
        if not location:
            asked = stop_replay(context)
            again = Wait("asked the engine again", 1.0, retry=True)
            return asked if isinstance(asked, Wait) else again
    else:
        if status.failure:
            msg = f"the savepoint of {replay_of(context.operation)} failed: {status.failure}"
            raise StepFailed(msg)
        if not status.done:
            return Wait("waits for every task of the replay to write its part")
        location = status.location
    summary = snapshotting.summary_json(context.engine.savepoint(location))
    return Done({"new_summary": summary | {"location": location}})


def record_replays_savepoint(context: Context) -> None:
    """Put it into the catalogue."""
    operation, run = context.operation, replay_run_of(context)
    label = f"{replay_of(operation)} when it was promoted"
    made = savepoints.begin(run, Savepoint.Origin.STOP, label, operation.actor)
    summary = snapshotting.summary_from(context.result["new_summary"])
    savepoints.complete(made, summary, context.now)
    operation.result |= {"new_savepoint": made.pk}
    operation.save(update_fields=["result"])


def await_replays_end(context: Context) -> Outcome:
    """See the replay's run end."""
    return ending.await_end_of(context, replay_run_of(context))


def record_replays_end(context: Context) -> None:
    """The replay has ended: nothing writes beside the targets any more."""
    found = context.operation.result.pop("ended", RunState.FINISHED)
    runs.observe(replay_run_of(context), found, context.now)


def swap_outputs(context: Context) -> Outcome:
    """Put what the replay has written in the place of what it corrects."""
    with _told():
        handing.swap_all(replay_of(context.operation))
    return Done()


def restore_outputs(context: Context) -> Outcome:
    """Put back what the old version had written."""
    return restore_outputs_of(context, runs_of(context.operation))


def restore_outputs_of(context: Context, runs_by_id: Sequence[str]) -> Outcome:
    """Put back what was there before those runs, named as the engine does, had written."""
    with _told():
        handing.restore_all(replay_of(context.operation), runs_by_id)
    return Done()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OutputUnreadable as error:
        raise StepFailed(str(error)) from error


def runs_of(operation: Operation) -> list[str]:
    """Engine's ids of the new version's runs: what they wrote is not the old version's."""
    keys = [operation.result.get("new_run"), operation.result.get("run")]
    found = Run.objects.filter(pk__in=[key for key in keys if key])
    mine = [run.engine_job_id for run in found if run.version_id == operation.params["version"]]
    replayed = replay_of(operation).run
    return [*mine, *([replayed.engine_job_id] if replayed else [])]


def create_new_run(
    context: Context, purpose: Run.Purpose = Run.Purpose.LIVE, span: Span | None = None
) -> None:
    """The new version shall go on from where its replay stopped, with the job's own settings."""
    operation = context.operation
    savepoint = Savepoint.objects.get(pk=operation.result["new_savepoint"])
    run = runs.create_run(
        context.job,
        version_of(operation),
        context.derived_id("new"),
        context.now,
        parallelism=settings_from(context.job.settings).parallelism,
        purpose=purpose,
        restored_from=savepoint,
        reason=f"started from {savepoint}, when {replay_of(operation)} was promoted",
        started_by=operation.actor,
        **(span or {}),
    )
    adopt(operation, run)


def create_old_run(context: Context) -> None:
    """The old version shall go on from where it stopped, with what the new one was to write."""
    operation = context.operation
    source, cut_at = Source.of(savepoint_of(operation)), replay_of(operation).cut_at
    restart_old(context, source, {} if cut_at is None else {"written_from": cut_at})


def restart_old(context: Context, source: Source, span: Span) -> None:
    """The old version shall go on from there."""
    operation = context.operation
    operation.result.pop("ended", None)
    why = operation.error or f"{replay_of(operation)} was rolled back"
    reason = f"started again from {source}: {why}"
    adopt(operation, create_run_of_old(context, "old again", source, reason, span))


def create_run_of_old(
    context: Context, purpose: str, source: Source, reason: str, span: Span
) -> Run:
    """Another run of the old version, as it ran before."""
    old = old_run_of(context.operation)
    return runs.create_run(
        context.job,
        old.version,
        context.derived_id(purpose),
        context.now,
        parallelism=old.parallelism,
        restored_from=source.savepoint,
        restored_path=source.path,
        settings=old.settings or context.job.settings,
        reason=reason[:500],
        started_by=context.operation.actor,
        **span,
    )


def _folder(context: Context) -> str:
    return f"{folder_of(context)}-replay"


def _replays_savepoint(context: Context) -> str:
    return snapshotting.find_in(context, replay_run_of(context), _folder(context))
