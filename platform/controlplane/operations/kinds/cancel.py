"""Cancel: end the run at once, without a savepoint.

    settle → cancel → end

It ends whatever else goes on with the job first: somebody who cancels must not have to wait for a
savepoint that hangs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import TERMINAL, Job, Run, RunState
from controlplane.operations.contract import Context, Kind, Outcome, Step, Wait
from controlplane.operations.kinds import checks
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending
from controlplane.operations.steps.rows import conclude
from controlplane.operations.steps.settling import settle


def run_beside(operation: Operation) -> Run | None:
    """A run that was to take its place at an event time, and writes to the same targets."""
    return Run.objects.filter(pk=operation.result.get("beside")).first()


def cancel(context: Context) -> Outcome:
    """Ask the engine to cancel the job, and what was to take its place."""
    if beside := run_beside(context.operation):
        ending.cancel_run(context, beside)
    return ending.cancel(context)


def await_end(context: Context) -> Outcome:
    """See both end."""
    if beside := run_beside(context.operation):
        outcome = ending.await_end_of(context, beside)
        if isinstance(outcome, Wait):
            return outcome
    return ending.await_end(context)


def record_cancelled(context: Context) -> None:
    """The run has ended."""
    ending.record_end(context)
    if beside := run_beside(context.operation):
        runs.observe(beside, RunState.CANCELED, context.now)
    conclude(context, f"{context.job.name} is cancelled")


class Cancel(Kind):
    """Cancel a job."""

    name = "cancel"
    supersedes = True
    steps = (
        Step("settle", "waits for what goes on with the job to come to rest", settle, timeout_s=90),
        Step("cancel", "asks the engine to cancel the job", cancel),
        Step(
            "end",
            "waits for the job to end",
            await_end,
            record_cancelled,
            timeout_s=120.0,
        ),
    )

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a running job can be cancelled."""
        checks.require_live_run(job, "cancel")

    def begin(self, operation: Operation, now: datetime) -> None:
        """The job is not wanted any more."""
        run = checks.require_live_run(operation.job, "cancel")
        operation.run = run
        operation.result |= {"run": run.pk}
        beside = operation.job.runs.filter(purpose=Run.Purpose.REPLAY, replay=None)
        if taking := beside.exclude(state__in=TERMINAL).first():
            operation.result["beside"] = taking.pk
        runs.want(operation.job, Job.Desired.STOPPED)
