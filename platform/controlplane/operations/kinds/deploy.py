"""Deploy: start a version of a job that does not run, from nothing or from a snapshot.

    upload → start → confirm                  when it is cancelled: withdraw → gone

Guarantee   The engine starts at most one job for it. One that is up late, after the operation gave
            up waiting, is the job's run all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.access.errors import Refused
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job, Run, RunState
from controlplane.jobs.settings import settings_from
from controlplane.live import topics
from controlplane.live.publish import publish_on_commit
from controlplane.moments import epoch_ms
from controlplane.operations.contract import (
    Cancelled,
    Context,
    Kind,
    Step,
    StepFailed,
    Superseded,
    TimedOut,
)
from controlplane.operations.kinds import checks
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, starting
from controlplane.operations.steps.rows import (
    Source,
    conclude,
    run_of,
    source_of,
    version_of,
)


def create_run(context: Context) -> None:
    """The run exists before the engine is asked to start it."""
    operation = context.operation
    asked, version = operation.params.get("parallelism"), version_of(operation)
    source = source_of(operation)
    run = runs.create_run(
        context.job,
        version,
        context.derived_id("run"),
        context.now,
        parallelism=asked or settings_from(context.job.settings).parallelism,
        restored_from=source.savepoint,
        restored_path=source.path,
        dropped=list(operation.params.get("drop", ())),
        accepted_gaps=list(operation.params.get("accept_missing_input", ())),
        reason=decision_of(operation, source),
        started_by=operation.actor,
    )
    adopt(operation, run)


def decision_of(operation: Operation, source: Source) -> str:
    """Why the run is started and from what, in one sentence that is kept with it."""
    if decided := operation.params.get("decision"):
        return str(decided)
    who = operation.actor or "the platform"
    why = f": {operation.reason}" if operation.reason else ""
    action = operation.kind.replace("_", " ")
    return f"started from {source}, for the {action} that {who} asked for{why}"[:500]


def adopt(operation: Operation, run: Run) -> None:
    """From now on the operation is about `run`."""
    operation.result["run"] = run.pk
    operation.run = run
    operation.save(update_fields=["result", "run"])


def record_up(context: Context) -> None:
    """Say what came out."""
    starting.record_up(context)
    run = run_of(context.operation)
    source = f"from {Source(run.restored_from, run.restored_path)}"
    text = f"{context.job.name} version {run.version.number} runs, started {source}"
    conclude(context, text, f"/jobs/{context.job.name}/")
    publish_on_commit(
        topics.events(run.job_id),
        {
            "id": f"run-{run.pk}",
            "at_ms": epoch_ms(context.now),
            "lane": "dep",
            "kind": "flag",
            "tone": "ink",
            "title": f"Version {run.version.number} runs",
            "text": f"started {source}",
            "run": run.pk,
        },
    )


class Deploy(Kind):
    """Start a job."""

    name = "deploy"
    steps = (
        Step("upload", "gives the engine the job file", starting.upload, create_run, builds=True),
        Step("start", "asks the engine to start the job", starting.start, builds=True),
        Step(
            "confirm",
            "waits for every task to run",
            starting.confirm,
            record_up,
            timeout_s=120.0,
        ),
    )
    recovery = (
        Step("withdraw", "takes the job back", ending.cancel),
        Step("gone", "waits for it to be gone", ending.await_end, ending.record_end),
    )

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """One run at a time, and no empty start of a job that requires state."""
        checks.require_no_live_run(job)
        checks.require_version(job, params["version"])
        savepoint = checks.require_usable(job, params.get("savepoint"))
        empty = savepoint is None and not params.get("snapshot")
        has_run = job.runs.filter(purpose=Run.Purpose.LIVE).exists()
        if empty and has_run and settings_from(job.settings).require_state:
            msg = (
                f"job {job.name} requires state, so it never starts empty: "
                "choose a savepoint, or turn the setting off"
            )
            raise Refused(409, "require_state", msg, {"savepoint": msg})

    def begin(self, operation: Operation, now: datetime) -> None:
        """Note that the job is wanted."""
        runs.want(operation.job, Job.Desired.RUNNING)

    def must_recover(self, operation: Operation, failure: StepFailed) -> bool:
        """What was asked for and is not wanted any more is taken back."""
        return isinstance(failure, Cancelled) and "run" in operation.result

    def fail(self, context: Context, failure: StepFailed) -> None:
        """A run that cannot come up has failed, and the job is not wanted any more.

        One that is only late may still come up, and one that another operation ends is its matter.
        What the reconciler started stays wanted: it tries again, later.
        """
        if "run" in context.result:
            if isinstance(failure, TimedOut | Superseded):
                return
            run = run_of(context.operation)
            runs.observe(run, RunState.FAILED, context.now, failure=str(failure))
        if not context.params.get("upkeep") or isinstance(failure, Cancelled):
            runs.want(context.job, Job.Desired.STOPPED)
