"""Savepoint: take one of a running job and put it in the catalogue.

    ready → trigger → savepoint → manifest

Guarantee   The catalogue's row exists from the start and ends complete or failed; the savepoint is
            found even when the engine has forgotten that it was asked for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from controlplane.jobs.models import Job
from controlplane.operations.contract import Context, Kind, Step, StepFailed
from controlplane.operations.kinds import checks
from controlplane.operations.models import Operation
from controlplane.operations.steps import snapshotting
from controlplane.operations.steps.rows import conclude, savepoint_of
from controlplane.snapshots import lifecycle as savepoints
from controlplane.snapshots.models import Savepoint

SAVEPOINT_TIMEOUT_S = 600.0
"""Flink's default timeout of a checkpoint: an engine gives up by itself before or about then."""


def begin_savepoint(operation: Operation, origin: Savepoint.Origin) -> None:
    """Put the row into the catalogue; the operation is about the job's run."""
    run = checks.require_live_run(operation.job, "take a savepoint of")
    label = operation.params.get("label", "")
    savepoint = savepoints.begin(run, origin, label, operation.actor)
    operation.run = run
    operation.result |= {"run": run.pk, "savepoint": savepoint.pk}


def record_taken(context: Context) -> None:
    """Complete the row, and say what came out."""
    snapshotting.record_savepoint(context)
    savepoint = savepoint_of(context.operation)
    position = savepoint.event_time
    at = f" at event time {position:%Y-%m-%d %H:%M:%S} UTC" if position else ""
    text = f"savepoint {savepoint.pk} of {context.job.name} is complete{at}"
    conclude(context, text, f"/jobs/{context.job.name}/savepoints/")


READY = Step("ready", "waits for every task to run", snapshotting.ready)
"""Apart from the trigger, because it can be cancelled without a trace."""

TAKE = (
    Step(
        "savepoint",
        "waits for every task to write its part",
        snapshotting.await_savepoint,
        timeout_s=SAVEPOINT_TIMEOUT_S,
    ),
    Step("manifest", "reads the manifest", snapshotting.read_manifest, record_taken),
)


class TakeSavepoint(Kind):
    """Take a savepoint."""

    name = "savepoint"
    discarded_by = "discard"
    steps = (
        READY,
        Step("trigger", "asks the engine for a savepoint", snapshotting.trigger),
        *TAKE,
    )

    def check(self, job: Job, params: Mapping[str, Any]) -> None:
        """Only a running job has state to save."""
        checks.require_live_run(job, "take a savepoint of")

    def begin(self, operation: Operation, now: datetime) -> None:
        """Put the row into the catalogue."""
        origin = operation.params.get("origin", Savepoint.Origin.MANUAL)
        begin_savepoint(operation, Savepoint.Origin(origin))

    def fail(self, context: Context, failure: StepFailed) -> None:
        """Say in the catalogue why there is none."""
        snapshotting.fail_savepoint(context, failure)
