"""Upgrade: stop the run with a savepoint and start another version from it.

    upload → check → trigger → savepoint → manifest → end → start → confirm
    when the new version does not come up:
    withdraw → gone → upload_old → start_old → confirm_old

Guarantee   A file that builds no graph is found before anything is stopped. When the new version
            does not come up, the old one runs again from the savepoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.access.errors import Refused
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job, Run, RunState
from controlplane.operations.contract import (
    Context,
    Done,
    Kind,
    Outcome,
    Step,
    StepFailed,
    Superseded,
)
from controlplane.operations.kinds import checks
from controlplane.operations.kinds.deploy import adopt, create_run, record_up
from controlplane.operations.kinds.savepoint import TAKE, begin_savepoint
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, snapshotting, starting
from controlplane.operations.steps.rows import old_run_of, run_of, savepoint_of
from controlplane.snapshots.models import Savepoint


def record_old_end(context: Context) -> None:
    """The old run has ended: the new one takes its place, from the savepoint."""
    ending.record_end(context)
    context.operation.result.pop("ended")
    create_run(context)


def withdraw(context: Context) -> Outcome:
    """Take the new version back, so that it cannot come up beside the old one."""
    return ending.cancel_run(context, run_of(context.operation))


def await_withdrawn(context: Context) -> Outcome:
    """See it gone."""
    if "ended" in context.result:
        return Done()
    return ending.await_end_of(context, run_of(context.operation))


def record_withdrawn(context: Context) -> None:
    """The new run has failed; a run of the old version takes its place."""
    operation = context.operation
    runs.observe(run_of(operation), RunState.FAILED, context.now, failure=operation.error)
    operation.result.pop("ended", None)
    old = old_run_of(operation)
    run = runs.create_run(
        context.job,
        old.version,
        context.derived_id("old"),
        context.now,
        parallelism=old.parallelism,
        restored_from=savepoint_of(operation),
    )
    adopt(operation, run)


def upload_old(context: Context) -> Outcome:
    """Give the engine the old version's file again."""
    return starting.upload_version(context, run_of(context.operation).version)


class Upgrade(Kind):
    """Replace a running version by another, with its state."""

    name = "upgrade"
    steps = (
        Step("upload", "gives the engine the job file", starting.upload, builds=True),
        Step("check", "lets the engine build the graph", starting.check, builds=True),
        Step("trigger", "asks the old version to stop with a savepoint", snapshotting.trigger_stop),
        *TAKE,
        Step(
            "end",
            "waits for the old version to end",
            ending.await_end,
            record_old_end,
            timeout_s=120.0,
        ),
        Step("start", "asks the engine to start the new version", starting.start, builds=True),
        Step("confirm", "waits for every task to run", starting.confirm, record_up, 120.0),
    )
    recovery = (
        Step("withdraw", "takes the new version back", withdraw),
        Step("gone", "waits for it to be gone", await_withdrawn, record_withdrawn),
        Step("upload_old", "gives the engine the old job file", upload_old, builds=True),
        Step(
            "start_old",
            "asks the engine to start the old version again",
            starting.start,
            builds=True,
        ),
        Step(
            "confirm_old",
            "waits for every task of the old version to run",
            starting.confirm,
            starting.record_up,
            timeout_s=120.0,
        ),
    )

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a running job can be upgraded, and only to a version of its own."""
        run = checks.require_live_run(job, "upgrade")
        version = checks.require_version(job, params["version"])
        checks.require_usable(job, params.get("savepoint"))
        if run.version_id == version.pk:
            msg = f"job {job.name} runs version {version.number} already; choose another"
            raise Refused(409, "same_version", msg, {"version": msg})

    def begin(self, operation: Operation, now: datetime) -> None:
        """Put the savepoint into the catalogue."""
        begin_savepoint(operation, Savepoint.Origin.UPGRADE)
        operation.result |= {"stops": True, "old_run": operation.result.pop("run")}

    def must_recover(self, operation: Operation) -> bool:
        """Once the old run has ended there is a new one to take back."""
        return "run" in operation.result

    def fail(self, context: Context, failure: StepFailed) -> None:
        """Say what does not run, and keep the job wanted: the old version runs, or should."""
        snapshotting.fail_savepoint(context, failure)
        runs.want(context.job, Job.Desired.RUNNING)
        if "run" in context.result:
            _end_unstarted(context, run_of(context.operation), failure)


def _end_unstarted(context: Context, run: Run, failure: StepFailed) -> None:
    """A run that never came up has failed; of one that another operation ends, that one decides."""
    if run.state == RunState.INITIALIZING and not isinstance(failure, Superseded):
        runs.observe(run, RunState.FAILED, context.now, failure=str(failure))
