"""Move: stop a running job on its cluster and start it on another one, where it was.

    on the other cluster    upload → check → reach
    on its own              ready → trigger → savepoint → manifest → end
    on the other            start → confirm
    when it does not come up there, back on its own:
    withdraw → gone → upload_old → start_old → confirm_old

Guarantee   Nothing is stopped before the other cluster has built the graph and read a snapshot of
            the job from where its own wrote it. The job never runs on both: on the one it is
            started when it was seen to end on the other. So a cluster that is away and may have
            started the job keeps it: the operation fails and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from controlplane.access.errors import Refused, conflict
from controlplane.audit.record import record
from controlplane.backends.models import Cluster
from controlplane.backends.registry import client_for
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Job
from controlplane.jobs.settings import settings_from
from controlplane.operations.contract import Context, Done, Outcome, Step
from controlplane.operations.kinds import checks
from controlplane.operations.kinds.deploy import adopt, record_up
from controlplane.operations.kinds.savepoint import READY, TAKE
from controlplane.operations.kinds.upgrade import Upgrade, record_withdrawn
from controlplane.operations.models import Operation
from controlplane.operations.steps import ending, reaching, snapshotting, starting
from controlplane.operations.steps.rows import conclude, left_behind_by, old_run_of, run_of


def there(context: Context) -> Context:
    """The same, asking the cluster that the job moves to."""
    return replace(context, engine=client_for(_target(context.operation)))


def upload(context: Context) -> Outcome:
    """Give the other cluster the file of what runs."""
    return starting.upload_version(there(context), old_run_of(context.operation).version)


def check(context: Context) -> Outcome:
    """Let the other cluster build the graph."""
    run = old_run_of(context.operation)
    arguments = settings_from(run.settings or run.job.settings).arguments
    there(context).engine.check(context.result["artifact"], arguments, run.parallelism)
    return Done()


def reach(context: Context) -> Outcome:
    """Let the other cluster read a snapshot of the job."""
    return reaching.reach(context, there(context).engine, _target(context.operation).name)


def record_left(context: Context) -> None:
    """The job has ended on its own cluster: from now on it is the other one's."""
    ending.forget_end(context)
    operation, old = context.operation, old_run_of(context.operation)
    source = left_behind_by(operation)
    runs.place(context.job, _target(operation))
    run = runs.create_run(
        context.job,
        old.version,
        context.derived_id("run"),
        context.now,
        parallelism=old.parallelism,
        restored_from=source.savepoint,
        settings=old.settings or context.job.settings,
        reason=f"started from {source}, moved from {old.cluster.name}"[:500],
        started_by=operation.actor,
    )
    adopt(operation, run)


def record_moved(context: Context) -> None:
    """It runs there."""
    record_up(context)
    operation = context.operation
    old, run = old_run_of(operation), run_of(operation)
    record(
        operation.actor,
        "job.move",
        context.job.name,
        job=context.job,
        reason=operation.reason,
        before={"cluster": old.cluster.name},
        after={"cluster": run.cluster.name},
    )
    text = f"{context.job.name} runs on {run.cluster.name}, moved from {old.cluster.name}"
    conclude(context, f"{text} with savepoint {run.restored_from_id}")


def record_back(context: Context) -> None:
    """It did not come up there: it is its own cluster's again, and starts where it was."""
    runs.place(context.job, old_run_of(context.operation).cluster)
    record_withdrawn(context)


def _target(operation: Operation) -> Cluster:
    return Cluster.objects.get(pk=operation.params["cluster"])


def _back(step: Step) -> Step:
    """A step of an upgrade's recovery; the one that makes the old run does so on its cluster."""
    return replace(step, record=record_back) if step.name == "gone" else step


class Move(Upgrade):
    """Run a job on another cluster from now on."""

    name = "move"
    steps = (
        Step("upload", "gives the other cluster the job file", upload, builds=True),
        Step("check", "lets the other cluster build the graph", check, builds=True),
        Step("reach", "lets the other cluster read a snapshot of the job", reach, builds=True),
        READY,
        Step("trigger", "asks the job to stop with a savepoint", snapshotting.trigger_stop),
        *TAKE,
        Step("end", "waits for the job to end", ending.await_end, record_left, 120.0),
        Step("start", "asks the other cluster to start the job", starting.start, builds=True),
        Step("confirm", "waits for every task to run", starting.confirm, record_moved, 120.0),
    )
    recovery = tuple(_back(step) for step in Upgrade.recovery)

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a running job, to another cluster of the same kind, that no replay is beside."""
        checks.require_live_run(job, "move")
        checks.require_no_replay(job, "move")
        target = Cluster.present.get(pk=params["cluster"])
        if target.pk == job.cluster_id:
            msg = f"job {job.name} runs on {target.name} already; choose another cluster"
            raise Refused(409, "same_cluster", msg, {"cluster": msg})
        if target.kind != job.cluster.kind:
            msg = (
                f"{target.name} is {target.get_kind_display()}, {job.cluster.name} is "
                f"{job.cluster.get_kind_display()}: the one cannot read the other's savepoints"
            )
            raise conflict(msg)

    def begin(self, operation: Operation, now: datetime) -> None:
        """Put the savepoint into the catalogue; the version is the one that runs."""
        super().begin(operation, now)
        operation.params["version"] = old_run_of(operation).version_id
