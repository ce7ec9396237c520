"""Stop: take a savepoint after which nothing is read, then end the run.

    ready → trigger → savepoint → manifest → end

    drain: the same, but first the sources say that their input has ended, so that every open
    window fires and is written

Guarantee   When the savepoint fails the job runs on, and is wanted as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Kind, Step, StepFailed, Superseded
from controlplane.operations.kinds import checks
from controlplane.operations.kinds.savepoint import READY, TAKE, begin_savepoint
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, snapshotting
from controlplane.operations.steps.rows import conclude, old_run_of, savepoint_of
from controlplane.snapshots.models import Savepoint


def record_stopped(context: Context) -> None:
    """The run has ended; say where its state is."""
    ending.record_end(context)
    savepoint = savepoint_of(context.operation)
    how = "drained and stopped" if context.result.get("drains") else "stopped"
    conclude(context, f"{context.job.name} {how} with savepoint {savepoint.pk}")


class Stop(Kind):
    """Stop a job with a savepoint."""

    name = "stop"
    drains = False
    settled = frozenset({"trigger", "savepoint", "manifest", "end"})
    steps = (
        READY,
        Step("trigger", "asks the engine to stop with a savepoint", snapshotting.trigger_stop),
        *TAKE,
        Step("end", "waits for the job to end", ending.await_end, record_stopped, 120.0),
    )

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a running job can stop."""
        checks.require_live_run(job, self.name)

    def begin(self, operation: Operation, now: datetime) -> None:
        """Put the savepoint into the catalogue; the job is not wanted any more."""
        begin_savepoint(operation, Savepoint.Origin.STOP)
        operation.result |= {"stops": True, "drains": self.drains}
        runs.want(operation.job, Job.Desired.STOPPED)

    def fail(self, context: Context, failure: StepFailed) -> None:
        """The job runs on, unless it has ended."""
        snapshotting.fail_savepoint(context, failure)
        run = old_run_of(context.operation)
        if not run.is_terminal and not isinstance(failure, Superseded):
            runs.want(context.job, Job.Desired.RUNNING)


class Drain(Stop):
    """Let every open window fire, then stop."""

    name = "drain"
    drains = True
