"""Upgrade: end the run and start another version, or the same one with other settings.

    upload → check → fit → one of these → start → confirm
                           savepoint    ready → trigger → savepoint → manifest → end
                           last_state   cancel → cancelled → newest
                           stateless    as last_state, without `fit`
    when the new version does not come up:
    withdraw → gone → upload_old → start_old → confirm_old

    savepoint    stops with a savepoint and goes on from it; needs every task to run
    last_state   cancels and goes on from the last checkpoint; also when tasks do not run
    stateless    cancels and starts empty: the state is left behind, input begins anew

Guarantee   A file that builds no graph, or does not take over the state, is found before anything
            is stopped. When the new version does not come up, the old one runs again from where
            it was, in every mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job, RunState
from controlplane.operations.contract import (
    Context,
    Done,
    Kind,
    Outcome,
    Step,
    StepFailed,
)
from controlplane.operations.kinds import checks
from controlplane.operations.kinds.deploy import adopt, create_run, record_up
from controlplane.operations.kinds.savepoint import READY, TAKE, begin_savepoint
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, fitting, snapshotting, starting
from controlplane.operations.steps.rows import STATELESS, left_behind_by, old_run_of, run_of
from controlplane.snapshots.models import Savepoint

SAVEPOINT, LAST_STATE = "savepoint", "last_state"
MODES = (SAVEPOINT, LAST_STATE, STATELESS)


def mode_of(operation: Operation) -> str:
    """How the state gets from the old run to the new one."""
    return str(operation.params.get("mode", SAVEPOINT))


def keeps_state(operation: Operation) -> bool:
    """Whether the new run starts from a snapshot."""
    return mode_of(operation) != STATELESS


def saves(operation: Operation) -> bool:
    """Whether the old run stops with a savepoint."""
    return mode_of(operation) == SAVEPOINT


def cancels(operation: Operation) -> bool:
    """Whether the old run is cancelled."""
    return not saves(operation)


def record_old_end(context: Context) -> None:
    """The old run has ended: the new one takes its place, from the savepoint."""
    ending.forget_end(context)
    create_run(context)


def cancel_old(context: Context) -> Outcome:
    """Ask the engine to cancel the old run."""
    return ending.cancel_run(context, old_run_of(context.operation))


def await_withdrawn(context: Context) -> Outcome:
    """See it gone."""
    if "ended" in context.result:
        return Done()
    return ending.await_end_of(context, run_of(context.operation))


def record_withdrawn(context: Context) -> None:
    """The new run has failed; a run of the old version takes its place, from where it was."""
    operation = context.operation
    runs.observe(run_of(operation), RunState.FAILED, context.now, failure=operation.error)
    operation.result.pop("ended", None)
    old, source = old_run_of(operation), left_behind_by(operation)
    run = runs.create_run(
        context.job,
        old.version,
        context.derived_id("old"),
        context.now,
        parallelism=old.parallelism,
        restored_from=source.savepoint,
        restored_path=source.path,
        settings=old.settings or context.job.settings,
        reason=f"started again from {source}: {operation.error}"[:500],
        started_by=operation.actor,
    )
    adopt(operation, run)


def only(step: Step, when: Callable[[Operation], bool]) -> Step:
    """The same step, done only then."""
    return replace(step, when=when)


class Upgrade(Kind):
    """Replace a running version by another, with its state."""

    name = "upgrade"
    settled = frozenset(
        {"trigger", "savepoint", "manifest", "end", "cancel", "cancelled", "newest"}
    )
    steps = (
        Step("upload", "gives the engine the job file", starting.upload, builds=True),
        Step("check", "lets the engine build the graph", starting.check, builds=True),
        Step(
            "fit",
            "compares the state of the running version with the graph",
            fitting.fit,
            builds=True,
            when=keeps_state,
        ),
        only(READY, saves),
        Step(
            "trigger",
            "asks the old version to stop with a savepoint",
            snapshotting.trigger_stop,
            when=saves,
        ),
        *(only(step, saves) for step in TAKE),
        Step(
            "end",
            "waits for the old version to end",
            ending.await_end,
            record_old_end,
            timeout_s=120.0,
            when=saves,
        ),
        Step("cancel", "asks the engine to cancel the old version", cancel_old, when=cancels),
        Step(
            "cancelled",
            "waits for the old version to end",
            ending.await_end,
            ending.forget_end,
            timeout_s=120.0,
            when=cancels,
        ),
        Step(
            "newest",
            "finds the last checkpoint of the old version",
            snapshotting.newest,
            create_run,
            when=cancels,
        ),
        Step("start", "asks the engine to start the new version", starting.start, builds=True),
        Step("confirm", "waits for every task to run", starting.confirm, record_up, 120.0),
    )
    recovery: Sequence[Step] = (
        Step("withdraw", "takes the new version back", ending.cancel),
        Step("gone", "waits for it to be gone", await_withdrawn, record_withdrawn),
        Step("upload_old", "gives the engine the old job file", starting.upload_run, builds=True),
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
        """Only a running job can be upgraded, only to what it does not run already."""
        run = checks.require_live_run(job, self.name)
        version = checks.require_version(job, params["version"])
        checks.require_usable(job, params.get("savepoint"))
        checks.require_mode(job, run, params)
        checks.require_difference(job, run, version, params)

    def begin(self, operation: Operation, now: datetime) -> None:
        """Put the savepoint into the catalogue, where one is taken."""
        if saves(operation):
            begin_savepoint(operation, Savepoint.Origin.UPGRADE)
            operation.result |= {"stops": True}
        else:
            run = checks.require_live_run(operation.job, self.name)
            operation.run = run
            operation.result |= {"run": run.pk}
        operation.result["old_run"] = operation.result.pop("run")

    def must_recover(self, operation: Operation, failure: StepFailed) -> bool:
        """Once the old run has ended there is a new one to take back."""
        return "run" in operation.result

    def fail(self, context: Context, failure: StepFailed) -> None:
        """Say what does not run, and keep the job wanted: the old version runs, or should."""
        if "savepoint" in context.result:
            snapshotting.fail_savepoint(context, failure)
        runs.want(context.job, Job.Desired.RUNNING)
        ending.end_unstarted(context, failure)


class Rollback(Upgrade):
    """Replace a running version by the last one that was healthy."""

    name = "rollback"
