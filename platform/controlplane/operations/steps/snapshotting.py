"""Steps that take a savepoint: wait for the tasks, ask for it, see it complete, read its manifest;
and one that finds the last checkpoint where none is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from controlplane.backends.contract import EngineBackend, SavepointSummary
from controlplane.backends.errors import EngineRefused, UnknownJob, UnknownTrigger
from controlplane.jobs.models import Run
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Wait
from controlplane.operations.steps.rows import folder_of, old_run_of, savepoint_of
from controlplane.operations.steps.starting import waiting_text
from controlplane.snapshots import lifecycle as savepoints
from controlplane.snapshots.queries import last_checkpoint, savepoint_under_way

MOST_TRIES = 3
RETRY_S = 2.0


def ready(context: Context) -> Outcome:
    """Wait until every task runs; a job that has ended is the next step's matter."""
    job = context.engine.job(old_run_of(context.operation).engine_job_id)
    if job.has_ended or job.is_up:
        return Done()
    return Wait(f"{waiting_text(job)}; a savepoint needs all of them")


def trigger(context: Context) -> Outcome:
    """Ask for a savepoint, once every task of the job runs."""
    run = old_run_of(context.operation)
    job = context.engine.job(run.engine_job_id)
    if job.has_ended:
        msg = f"job {job.name} has ended ({job.state}): a savepoint needs a running job"
        raise StepFailed(msg)
    if not job.is_up:
        return Wait(f"{waiting_text(job)}; a savepoint needs all of them")
    context.engine.trigger_savepoint(run.engine_job_id, folder_of(context), trigger_id(context))
    return Done()


def trigger_stop(context: Context) -> Outcome:
    """Ask the job to stop with a savepoint, once every task of it runs."""
    run = old_run_of(context.operation)
    job = context.engine.job(run.engine_job_id)
    if job.has_ended:
        return _already_stopped(context, job.state)
    if not job.is_up:
        return Wait(f"{waiting_text(job)}; stopping with a savepoint needs all of them")
    drain = bool(context.result.get("drains"))
    context.engine.stop(run.engine_job_id, folder_of(context), trigger_id(context), drain=drain)
    return Done()


def _already_stopped(context: Context, state: str) -> Outcome:
    """It may have stopped for an earlier try, whose answer was lost."""
    if find(context):
        return Done()
    msg = f"{context.job.name} has ended ({state}): there is nothing to stop"
    raise StepFailed(msg)


def await_savepoint(context: Context) -> Outcome:
    """See the savepoint complete."""
    run = old_run_of(context.operation)
    try:
        status = context.engine.savepoint_status(run.engine_job_id, trigger_id(context))
    except UnknownTrigger:
        return _after_forgetting(context)
    if status.failure:
        return _after_failure(context, status.failure)
    if not status.done:
        return Wait(f"waits for every task to write its part{_written(run)}")
    return Done({"location": status.location})


def _written(run: Run) -> str:
    """How many have, as the collector saw it last; empty while it has not."""
    seen = savepoint_under_way(run)
    if seen is None or not seen.detail.get("subtasks"):
        return ""
    return f": {seen.detail['acknowledged']} of {seen.detail['subtasks']} have"


def newest(context: Context) -> Outcome:
    """Find the last checkpoint of the run that was ended; the empty path when it has none."""
    run = old_run_of(context.operation)
    try:
        found = context.engine.newest_snapshot(run.engine_job_id)
    except UnknownJob:
        found = ""
    return Done({"snapshot": found or mirrored(run) or run.restored_path})


def mirrored(run: Run) -> str:
    """Its last completed checkpoint, as the collector saw it; empty when there is none."""
    seen = last_checkpoint(run)
    return seen.external_path if seen else ""


def may_still_stop(context: Context) -> bool:
    """Whether the job may end by itself yet: its savepoint is complete, or on its way."""
    run = old_run_of(context.operation)
    try:
        if not context.engine.savepoint_status(run.engine_job_id, trigger_id(context)).done:
            return True
    except UnknownTrigger:
        pass
    return bool(find(context))


def _after_failure(context: Context, failure: str) -> Outcome:
    """A job that restarts fails the savepoint that is on its way: ask again, a few times."""
    sentence = f"the savepoint of {context.job.name} failed: {failure}"
    tries = context.result.get("tries", 0) + 1
    if tries >= MOST_TRIES:
        raise StepFailed(sentence)
    return Wait(f"{sentence}; asks again", RETRY_S, {"tries": tries}, retry=True)


def _after_forgetting(context: Context) -> Outcome:
    """The engine does not know our id (any more): look for the savepoint, or ask again."""
    if found := find(context):
        return Done({"location": found})
    ask = trigger_stop if context.result.get("stops") else trigger
    outcome = ask(context)
    if isinstance(outcome, Wait):
        return outcome
    tries = context.result.get("tries", 0)
    if tries > context.result.get("asked", 0):
        again = f"the engine was asked for it again: {tries + 1} of {MOST_TRIES}"
    else:
        again = "the engine forgot what it was asked for and was asked again"
    return Wait(again, 1.0, {"asked": tries}, retry=True)


def find(context: Context) -> str:
    """The savepoint in the operation's own folder, if there is one that is complete."""
    return find_in(context, old_run_of(context.operation), folder_of(context))


def is_readable(engine: EngineBackend, location: str) -> bool:
    """Whether that engine finds a whole snapshot there."""
    try:
        engine.savepoint(location)
    except EngineRefused:
        return False
    return True


def find_in(context: Context, run: Run, folder: str) -> str:
    """The savepoint of `run` in `folder`, if there is one that is complete."""
    for location in _listed(context, run):
        if _path(location).startswith(f"{folder}/"):
            return location
    complete = sorted(Path(folder).glob("*/_metadata"))
    return str(complete[0].parent) if complete else ""


def _listed(context: Context, run: Run) -> Sequence[str]:
    """What the job's statistics list; an engine that began anew may not know the job any more."""
    try:
        return context.engine.savepoint_locations(run.engine_job_id)
    except UnknownJob:
        return ()


def _path(location: str) -> str:
    """The path of a location on a file system: Flink writes `file:/data`, we `file:///data`."""
    return location.removeprefix("file:").removeprefix("//")


def read_manifest(context: Context) -> Outcome:
    """Read what the savepoint says of itself."""
    return Done({"summary": summary_json(context.engine.savepoint(context.result["location"]))})


def summary_json(summary: SavepointSummary) -> dict[str, Any]:
    """As an operation keeps it."""
    position = summary.event_time
    return asdict(summary) | {"event_time": position and position.isoformat()}


def summary_from(kept: Mapping[str, Any]) -> SavepointSummary:
    """Read what `summary_json` gave."""
    position = kept["event_time"]
    return SavepointSummary(
        **dict(kept) | {"event_time": position and datetime.fromisoformat(position)}
    )


def record_savepoint(context: Context) -> None:
    """Complete its row in the catalogue."""
    summary = replace(summary_from(context.result["summary"]), location=context.result["location"])
    savepoints.complete(savepoint_of(context.operation), summary, context.now)


def fail_savepoint(context: Context, failure: StepFailed) -> None:
    """Note why there is none, unless there is."""
    savepoints.fail(savepoint_of(context.operation), str(failure), context.now)


def trigger_id(context: Context) -> str:
    """One for each try: under an id that has failed an engine only repeats the failure."""
    return context.derived_id(f"try {context.result.get('tries', 0)}")
