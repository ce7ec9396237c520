"""Steps that start a run: give the engine the artifact, ask for the job, see it come up."""

from __future__ import annotations

from typing import Any

from controlplane.backends.contract import (
    RETAIN,
    SETTING_DISCARD,
    SETTING_FROM,
    SETTING_RETENTION,
    SETTING_SHADOW,
    SETTING_UNTIL,
    EngineJob,
    Start,
)
from controlplane.backends.errors import UnknownJob
from controlplane.backends.models import Cluster
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.artifacts import is_whole
from controlplane.jobs.models import JobVersion, Run
from controlplane.jobs.settings import settings_from
from controlplane.operations.contract import Context, Done, Outcome, StepFailed, Wait
from controlplane.operations.steps.rows import run_of, version_of
from controlplane.replay.models import Replay
from controlplane.replay.preflight import elsewhere


def upload(context: Context) -> Outcome:
    """Give the engine the artifact of the version that is asked for."""
    return upload_version(context, version_of(context.operation))


def upload_version(context: Context, version: JobVersion) -> Outcome:
    """Give the engine the artifact of `version`; again does no harm."""
    if not is_whole(version.artifact, version.checksum):
        msg = f"the file of {version} is gone or was altered: {version.artifact}; upload it again"
        raise StepFailed(msg)
    return Done({"artifact": context.engine.upload(version.filename, version.artifact)})


def upload_run(context: Context) -> Outcome:
    """Give the engine the artifact of the version that the operation's run has."""
    return upload_version(context, run_of(context.operation).version)


def check(context: Context) -> Outcome:
    """Let the engine build the graph, so that a bad file is found before anything is stopped."""
    settings = settings_from(context.job.settings)
    context.engine.check(context.result["artifact"], settings.arguments, settings.parallelism)
    return Done()


def start(context: Context) -> Outcome:
    """Ask for the job, unless an earlier try came through."""
    run = run_of(context.operation)
    if _look(context, run) is None:
        context.engine.start(request_of(run, context.result["artifact"]))
    return Done()


def request_of(run: Run, artifact_id: str) -> Start:
    """What the engine is asked to start for `run`."""
    settings = settings_from(run.settings or run.job.settings)
    return Start(
        artifact_id=artifact_id,
        engine_job_id=run.engine_job_id,
        parallelism=run.parallelism,
        arguments=settings.arguments,
        settings=settings.for_engine(run_name(run)) | _chosen(run) | _retention(run),
        savepoint_path=run.restored_path,
        allow_non_restored=frozenset(run.dropped),
        accept_missing_input=frozenset(run.accepted_gaps),
    )


def run_name(run: Run) -> str:
    """What the engine calls it: the job's name, or `<job>@r-7` for a replay."""
    replay = _replay_of(run)
    return run.job.name if replay is None else str(replay)


def _chosen(run: Run) -> dict[str, str]:
    """Where its sinks write, what part of event time, and where its sources begin."""
    replay, chosen = _replay_of(run), {}
    until = run.written_until
    if replay is not None:
        chosen[SETTING_SHADOW] = replay.name
        if replay.discards:
            chosen[SETTING_DISCARD] = "true"
        until = replay.until
        chosen |= elsewhere(replay.positions)
    if run.written_from is not None:
        chosen[SETTING_FROM] = run.written_from.isoformat()
    if until is not None:
        chosen[SETTING_UNTIL] = until.isoformat()
    return chosen


def _replay_of(run: Run) -> Replay | None:
    """The replay whose run it is; none of one that takes the live one's place at an event time."""
    return Replay.objects.filter(run=run).first()


def _retention(run: Run) -> dict[str, str]:
    """A Flink cluster deletes the checkpoints of a cancelled job at once, ours after a week."""
    if run.cluster.kind == Cluster.Kind.FLINK:
        return {SETTING_RETENTION: RETAIN}
    return {}


def confirm(context: Context) -> Outcome:
    """See the job come up with every task."""
    run = run_of(context.operation)
    job = context.engine.job(run.engine_job_id)
    if job.state in {"FAILED", "CANCELED"}:
        reason = job.failure or "the engine gave no reason"
        msg = f"job {job.name} did not start: {reason}"
        raise StepFailed(msg)
    if job.is_up or job.state == "FINISHED":
        return Done({"state": job.state, "plan": dict(job.plan), "up": True})
    return Wait(waiting_text(job))


def waiting_text(job: EngineJob) -> str:
    """Why it is not up yet."""
    if job.waiting_for:
        return f"job {job.name} {job.waiting_for}"
    reason = f" ({job.failure})" if job.failure else ""
    return (
        f"job {job.name} is {job.state}{reason}, {job.tasks_running} of {job.tasks_total} tasks run"
    )


def record_up(context: Context) -> None:
    """The run is up."""
    found: dict[str, Any] = context.result
    runs.observe(run_of(context.operation), found["state"], context.now, plan=found["plan"])


def _look(context: Context, run: Run) -> EngineJob | None:
    try:
        return context.engine.job(run.engine_job_id)
    except UnknownJob:
        return None
