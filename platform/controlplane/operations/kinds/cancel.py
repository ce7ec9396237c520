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
from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Kind, Step
from controlplane.operations.kinds import checks
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending
from controlplane.operations.steps.rows import conclude
from controlplane.operations.steps.settling import settle


def record_cancelled(context: Context) -> None:
    """The run has ended."""
    ending.record_end(context)
    conclude(context, f"{context.job.name} is cancelled")


class Cancel(Kind):
    """Cancel a job."""

    name = "cancel"
    supersedes = True
    steps = (
        Step("settle", "waits for what goes on with the job to come to rest", settle, timeout_s=90),
        Step("cancel", "asks the engine to cancel the job", ending.cancel),
        Step(
            "end",
            "waits for the job to end",
            ending.await_end,
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
        runs.want(operation.job, Job.Desired.STOPPED)
